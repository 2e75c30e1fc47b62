// gate: may this kernel change go in? Regression corpus first, then drawn cases up to the budget.
#include "reports/commands/session.hpp"

#include "fuzz/corpus.hpp"
#include "reports/commands/subjects.hpp"

namespace attest {

int gate(const CampaignCommand& options) {
  CampaignOptions campaign;
  campaign.seed = options.seed;
  campaign.threads = options.threads;
  campaign.properties = options.properties;
  campaign.where = narrowing_of(options);
  campaign.first = read_corpus(program_folder() / "corpus");
  campaign.budget_cases = options.cases;
  if (!options.budget.empty()) {
    campaign.budget_seconds = seconds_of(options.budget, "--budget");
  } else if (!options.cases) {
    campaign.budget_cases = kGateCases;
  }
  return conclude(run_session(options, campaign, "gating", {}));
}

}  // namespace attest
