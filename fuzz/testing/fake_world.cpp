// Definitions of what properties/ would define: catalogue(), draw_case(), probe(), fills() ...
#include "fuzz/testing/fake_world.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "fuzz/check.hpp"
#include "fuzz/run.hpp"
#include "properties/ask.hpp"
#include "properties/domains/dimensions.hpp"
#include "properties/domains/domain.hpp"
#include "properties/domains/fitted.hpp"
#include "properties/domains/hard_cases.hpp"
#include "properties/fills.hpp"
#include "reference/text.hpp"
#include "reference/validity.hpp"

namespace attest {
namespace {

Verdict first_number_is_zero(const Subject& subject, const Problem& problem, const Values& values) {
  Verdict verdict;
  if (subject.declines && subject.declines(Operation::prefill, problem)) {
    verdict.outcome = Outcome::declined;
    return verdict;
  }
  const Reply reply = subject.call(Attend{Operation::prefill, problem, values}, Poison::nan);
  if (reply.fault) {
    verdict.outcome = Outcome::faulted;
    verdict.why = reply.fault->what;
    return verdict;
  }
  verdict.compared = 1;
  verdict.bound = 1;
  verdict.error = reply.o.at(0);
  verdict.outcome = verdict.error > verdict.bound ? Outcome::violated : Outcome::holds;
  verdict.margin = verdict.error / verdict.bound;
  if (verdict.outcome == Outcome::violated && problem.ring > 0) verdict.refused_by = "order_free";
  verdict.power = {{"zeros", problem.causal}};
  verdict.sight = problem.causal ? Sight::sharp : Sight::blind;
  return verdict;
}

std::string explained(const Subject&, const Problem& problem, const Values& values) {
  return fmt::format("seen with {} keys and {}", problem.seqlen_kv, values.q.at(0));
}

std::uint64_t scrambled(std::uint64_t x) {  // the finaliser of splitmix64
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

}  // namespace

std::span<const Property> catalogue() {
  static constexpr std::array kCatalogue{
      Property{"first", "the first number is at most 1", first_number_is_zero},
      Property{"second", "the first number is at most 1, again", first_number_is_zero},
      Property{"third", "the first number is at most 1, once more", first_number_is_zero, explained,
               Operation::prefill}};
  return kCatalogue;
}

std::span<const Fill> fills() {
  static constexpr std::array kFills{Fill{"normal", "none"}, Fill{"ramp", "none"},
                                     Fill{"needle", "none"}};
  return kFills;
}

Case draw_case(std::string_view property, std::uint64_t seed, std::uint64_t index) {
  std::uint64_t state = scrambled(seed) + index * 3 + property.size();
  const auto below = [&state](Index count) {
    state = scrambled(state);
    return static_cast<Index>(state % static_cast<std::uint64_t>(count));
  };
  Case drawn;
  Problem& p = drawn.problem;
  p.batch = 1 + below(3);
  p.num_heads_kv = 1 + below(3);
  p.num_heads_q = p.num_heads_kv * (1 + below(3));
  p.seqlen_q = 1 + below(40);
  p.seqlen_kv = 1 + below(40);
  p.head_dim = 1 + below(64);
  p.head_dim_v = 1 + below(64);
  p.softmax_scale = default_scale(p.head_dim);
  p.causal = below(2) == 1;
  p.bias = below(2) == 1;
  drawn.fill = fills()[static_cast<std::size_t>(below(3))].name;
  drawn.seed = static_cast<std::uint64_t>(below(1000));
  return drawn;
}

Served probe(const Subject&, const Bring&) {
  return {};
}

Case fitted(const Case& drawn, std::string_view, const Subject&, const Served&) {
  return drawn;
}

Case planned(const Case& drawn, std::string_view, const Subject&, const Served&, std::uint64_t) {
  return drawn;
}

std::optional<Operation> operation_for(std::string_view, const Problem&, const Served&) {
  return Operation::prefill;
}

std::span<const std::string_view> hard_cases(std::string_view) {
  return {};
}

Needs needs_of(std::string_view) {
  return {};
}

Operation attention_for(const Problem&) {
  return Operation::prefill;
}

Values make_values(const Case& test_case) {
  Values values;
  values.q = Tensor(Format::f32, {1, 1, 1, 1});
  values.q.set(0, static_cast<double>(test_case.seed));
  return values;
}

Subject fake_subject(FakeBehaviour behaviour) {
  Subject subject;
  subject.description.name = "fake";
  subject.description.numerics = "none";
  if (behaviour.declined) {
    subject.declines = [declined = behaviour.declined](Operation, const Problem& problem) {
      return declined(problem) ? std::optional<std::string>("asked to") : std::nullopt;
    };
  }
  subject.offered.set(static_cast<std::size_t>(Operation::prefill));
  subject.call = [behaviour = std::move(behaviour)](const Request& request, Poison) {
    const auto& [operation, problem, values] = std::get<Attend>(request);
    Reply reply;
    const std::string kind = behaviour.fault ? behaviour.fault(problem) : std::string();
    if (!kind.empty()) {
      reply.fault = Fault{kind, "as the test asked"};
      return reply;
    }
    reply.o = Tensor(Format::f32, {1, 1, 1, 1});
    reply.lse = Tensor(Format::f32, {1, 1, 1, 1});
    const bool wrong = behaviour.wrong && behaviour.wrong(problem, values);
    reply.o.set(0, wrong ? 2 : values.q.at(0) / 1024);
    return reply;
  };
  return subject;
}

Run run_against(const FakeBehaviour& behaviour, const CampaignOptions& options,
                const CampaignEvents& events) {
  const std::atomic<bool> stop = false;
  return run_campaign([&] { return fake_subject(behaviour); }, options, events, stop);
}

CampaignOptions cases(std::uint64_t count, unsigned threads) {
  CampaignOptions options;
  options.budget_cases = count;
  options.threads = threads;
  return options;
}

std::string fingerprint(const Run& run) {
  std::string text = fmt::format("{} cases, next {}\n", run.cases(), run.next_index);
  for (const PropertyTally& t : run.tallies) {
    text += fmt::format("{} {} {} {} {} {} {} {} {} {} {}\n", t.property, t.cases, t.held,
                        t.violated, t.vacuous, t.declined, t.redrawn, t.faulted, t.compared,
                        t.margin_max, print(t.margin_case));
  }
  for (const Finding& f : run.findings) {
    text += fmt::format("{} | {} | {} | {}\n", f.property, print(f.found),
                        print(PropertyCase{"", f.shrunk, f.setting}), f.shrink_steps);
  }
  for (const auto& [name, power] : run.power) {
    text += fmt::format("{} {}/{}\n", name, power.refused, power.cases);
  }
  for (const auto& [name, cell] : run.cells) {
    text += fmt::format("{} {}/{} {}\n", name, cell.sharp, cell.cases, print(cell.smallest));
  }
  for (const auto& [name, sight] : run.sight) {
    text += fmt::format("{} {}/{}\n", name, sight.sharp, sight.answered);
  }
  for (const Unreproduced& once : run.unreproduced) text += once.what + "\n";
  for (const auto& [name, cases] : run.features) text += fmt::format("{} {}\n", name, cases);
  for (const auto& [name, cases] : run.models) text += fmt::format("{} {}\n", name, cases);
  return text;
}

}  // namespace attest
