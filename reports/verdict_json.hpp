// A Verdict, and how the emulator ran, as JSON and back: the same in run.json and in a finding's
// verdict.json.
#pragma once
#include "fuzz/run.hpp"
#include "reference/verdict.hpp"
#include "reports/strict_json.hpp"

namespace attest {

nlohmann::json json_of(const Verdict& verdict);
Verdict read_verdict(const Fields& fields);
std::array<Index, 4> read_where(const Fields& fields, std::string_view name);

nlohmann::json json_of(const EmulationOptions& emulation);
/// The member `emulation`; the defaults when there is none, as in files of earlier versions.
EmulationOptions read_emulation(const Fields& fields);

/// Null where there was nothing to choose.
nlohmann::json json_of(const std::optional<Setting>& setting);
/// The member `setting`; nothing when there is none, as in files of earlier versions.
std::optional<Setting> read_setting(const Fields& fields);

}  // namespace attest
