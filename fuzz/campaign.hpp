// Campaign: draws cases, checks properties on them over all cores, shrinks what fails.
#pragma once
#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "fuzz/check.hpp"
#include "fuzz/narrowing.hpp"
#include "fuzz/run.hpp"
#include "properties/property.hpp"

namespace attest {

/// Without a budget a campaign goes on until it is stopped.
struct CampaignOptions {
  std::uint64_t seed = 1;
  std::uint64_t first_index = 0;              // of drawn cases: Run::next_index of an earlier one
  std::optional<double> budget_seconds;       // no case is begun after these
  std::optional<std::uint64_t> budget_cases;  // drawn cases; what `first` holds comes on top
  unsigned threads = 2;
  std::vector<std::string> properties;  // empty: all of the catalogue
  std::vector<PropertyCase> first;      // run before anything is drawn: the regression corpus
  Narrowing where;                      // all else is declined, by whoever is asked
  EmulationOptions emulation;           // of subjects that can be told; `checks` is not used
  double shrink_seconds = 5;            // per finding
  std::uint64_t shrink_steps = 400;     // per finding
  /// As many of one kind (violated, or faulted in one way) end the drawing of a property.
  std::uint64_t findings_per_property = 1;
};

/// Called from one thread at a time. All optional.
struct CampaignEvents {
  /// Before the case is launched: the line must reach the disk first.
  std::function<void(const PropertyCase&)> about_to_run;
  std::function<void(const Finding&)> found;  // shrunk and final: write it at once
  std::function<void(const Run& so_far, double share_done)> progress;
};

/// `make_subject` is called once per thread, before anything runs, when what it throws is passed
/// on; then, from one thread at a time, for every case that failed: what does not fail again on a
/// fresh subject is no finding, but goes to Run::unreproduced. Stops early, with what it has, when
/// `stop` is set. With a budget of cases nothing in the Run but its seconds depends on the number
/// of threads. When a check throws, the others finish what they began, findings are kept, and
/// Run::error says what happened.
Run run_campaign(const std::function<Subject()>& make_subject, const CampaignOptions& options,
                 const CampaignEvents& events, const std::atomic<bool>& stop);

/// The smallest case found, walking towards the default Problem, on which `property` still fails
/// with the same outcome. Bounded by options.shrink_seconds and shrink_steps.
Finding shrink(const Subject& subject, const Property& property, const Case& test_case,
               const Verdict& verdict, const CampaignOptions& options);

}  // namespace attest
