// Campaign: draws cases, checks properties on them over all cores, shrinks what fails.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "fuzz/run.hpp"
#include "properties/property.hpp"

namespace attest {

struct CampaignOptions {
  std::uint64_t seed = 1;
  std::optional<double> budget_seconds;
  std::optional<std::uint64_t> budget_cases;
  unsigned threads = 2;
  std::vector<std::string> properties;      // empty: all of the catalogue
  double shrink_seconds = 5;                // per finding
  std::uint64_t shrink_steps = 400;         // per finding
  std::uint64_t findings_per_property = 1;  // after these a property is no longer drawn
};

/// Called from one thread at a time. All optional.
struct CampaignEvents {
  /// Before the case is launched: the line must reach the disk first.
  std::function<void(const std::string& property, const Case&)> about_to_run;
  std::function<void(const Finding&)> found;  // shrunk and final: write it at once
  std::function<void(const Run& so_far, double share_done)> progress;
};

/// `make_subject` is called once per thread. Stops early, with what it has, when `stop` is set.
Run run_campaign(const std::function<Subject()>& make_subject, const CampaignOptions& options,
                 const CampaignEvents& events, const std::atomic<bool>& stop);

/// One check, nothing random: what replay does.
Verdict check_case(const Subject& subject, const Property& property, const Case& test_case);

/// The smallest case found, walking towards the default Problem, on which `property` still fails
/// with the same outcome. Bounded by options.shrink_seconds and shrink_steps.
Finding shrink(const Subject& subject, const Property& property, const Case& test_case,
               const Verdict& verdict, const CampaignOptions& options);

}  // namespace attest
