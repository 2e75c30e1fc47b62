// fuzz: as gate, without an end. What it finds joins the corpus, and where it got to is kept there,
// so that it goes on after being killed.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "fuzz/corpus.hpp"
#include "reports/commands/session.hpp"
#include "reports/commands/subjects.hpp"

namespace attest {
namespace {

constexpr std::uint64_t kFindingsPerProperty = 8;  // of one kind; then the rest is worth more
constexpr auto kPlaceEvery = std::chrono::seconds(1);

std::string names_of(const std::vector<std::string>& chosen) {
  std::string names;
  for (const Property& property : catalogue()) {
    if (!chosen.empty() && std::ranges::find(chosen, property.name) == chosen.end()) continue;
    names += fmt::format("{}{}", names.empty() ? "" : ",", property.name);
  }
  return names;
}

}  // namespace

int fuzz(const CampaignCommand& options) {
  const std::filesystem::path corpus = options.corpus;
  const Narrowing where = narrowing_of(options);
  CampaignPlace place{options.seed, 0, names_of(options.properties),
                      reference_of(options.subject.subject), where.text};
  if (const auto before = read_place(corpus);
      before && before->seed == place.seed && before->properties == place.properties &&
      before->subject == place.subject && before->where == place.where) {
    place.next_index = before->next_index;
  }
  write_place(corpus, place);

  CampaignOptions campaign;
  campaign.seed = options.seed;
  campaign.first_index = place.next_index;
  campaign.threads = options.threads;
  campaign.properties = options.properties;
  campaign.where = where;
  campaign.findings_per_property = kFindingsPerProperty;
  campaign.first = read_corpus(program_folder() / "corpus");
  std::ranges::copy(read_corpus(corpus), std::back_inserter(campaign.first));
  campaign.budget_cases = options.cases;
  if (!options.budget.empty()) campaign.budget_seconds = seconds_of(options.budget, "--budget");

  SessionHooks hooks;
  hooks.found = [&](const Finding& finding) {
    add_to_corpus(corpus, {finding.property, finding.shrunk, finding.setting},
                  fmt::format("found by fuzz in '{}', drawn as {}", options.subject.subject,
                              print(PropertyCase{finding.property, finding.found})));
  };
  auto written = std::chrono::steady_clock::now();
  hooks.progressed = [&](const Run& so_far) {
    const auto now = std::chrono::steady_clock::now();
    if (now - written < kPlaceEvery) return;
    written = now;
    place.next_index = so_far.next_index;
    write_place(corpus, place);
  };
  const Run run =
      run_session(options, campaign, place.next_index == 0 ? "fuzzing" : "going on fuzzing", hooks);
  place.next_index = run.next_index;
  write_place(corpus, place);
  return conclude(run);
}

}  // namespace attest
