// Session: a campaign with its journal, its findings on disk, its progress and its reports. What
// gate and fuzz have in common.
#pragma once
#include <filesystem>
#include <functional>

#include "fuzz/campaign.hpp"
#include "reports/commands/commands.hpp"

namespace attest {

/// "45s", "10m", "1h", "90" (seconds). Throws Error naming `option`.
double seconds_of(const std::string& text, const std::string& option);

/// What --where asks for. Throws Error for what is no attribute, or what no problem has.
Narrowing narrowing_of(const CampaignCommand& options);

struct SessionHooks {
  std::function<void(const Finding&)> found;   // may be empty
  std::function<void(const Run&)> progressed;  // may be empty
};

/// Runs `campaign` on the subject and under the emulation of `options` and prints first line,
/// findings and table. Journal (cases.log), findings and reports go to options.report. Throws Error
/// before anything has run when that folder cannot be written, and when the subject cannot be
/// opened, which the reports then say.
Run run_session(const CampaignCommand& options, CampaignOptions campaign, std::string_view purpose,
                const SessionHooks& hooks);

/// The last lines of a run: what it means and, when the subject is wrong, the command that shows
/// it.
int conclude(const Run& run);

}  // namespace attest
