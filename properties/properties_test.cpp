// Each property, tested from both sides: it accepts the truth and an honest f32 computation on
// every case tried, and it refuses at least one small mistake that is its business.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "properties/counted_subject.hpp"
#include "properties/domains/domain.hpp"
#include "properties/domains/hard_cases.hpp"
#include "properties/fills.hpp"
#include "properties/oracle_subject.hpp"
#include "properties/property.hpp"
#include "properties/tiled_subject.hpp"
#include "reference/text.hpp"

namespace attest {
namespace {

/// Cases per property: the hard ones and so many drawn ones.
constexpr std::uint64_t kDrawn = 40;
/// Drawn cases that cost more are left to campaigns.
constexpr double kWorkMost = 6e4;

bool is_cheap(const Problem& p) {
  return static_cast<double>(p.batch * p.query_heads * p.queries) *
             static_cast<double>((p.keys + 1) * (p.depth + p.v_depth)) <=
         kWorkMost;
}

void expect_all_hold(const Subject& subject) {
  for (const Property& property : catalogue()) {
    int held = 0;
    const std::uint64_t last = hard_cases(property.name).size() + kDrawn;
    for (std::uint64_t index = 0; index < last; ++index) {
      const Case c = draw_case(property.name, 11, index);
      if (!is_cheap(c.problem) && property.name != "variance_scaling") continue;
      const Verdict verdict = property.check(subject, c.problem, make_values(c));
      EXPECT_NE(verdict.outcome, Outcome::violated) << property.name << ": " << print(c) << "\n  "
                                                    << verdict.why << " margin " << verdict.margin;
      EXPECT_NE(verdict.outcome, Outcome::faulted) << property.name << ": " << verdict.why;
      EXPECT_NE(verdict.outcome, Outcome::declined) << property.name << ": " << verdict.why;
      held += verdict.outcome == Outcome::holds ? 1 : 0;
      if (property.name == "variance_scaling" && index >= 5) break;  // costly, and all alike
    }
    EXPECT_GE(held, 5) << property.name;
  }
}

TEST(Properties, NeverRefuseTheTruth) {
  expect_all_hold(counted(oracle_subject()));
}

TEST(Properties, LeaveRoomForHonestRounding) {
  expect_all_hold(counted(tiled_subject(16)));
}

/// A mistake, and the properties whose business it is.
struct Mistake {
  std::string name;
  std::vector<std::string> seen_by;
  std::function<Subject()> subject;
};

/// The oracle, asked another question than the one put.
Subject misunderstanding(std::function<void(Problem&, Values&)> change) {
  Subject subject = oracle_subject();
  const auto right = subject.prefill;
  subject.prefill =
      subject.decode = [=](const Problem& asked, const Values& values, Poison poison) {
        Problem problem = asked;
        Values changed = values;
        change(problem, changed);
        return right(problem, changed, poison);
      };
  return subject;
}

/// The oracle, with its reply spoilt.
Subject spoiling(std::function<void(const Problem&, Reply&)> spoil) {
  Subject subject = oracle_subject();
  const auto right = subject.prefill;
  subject.prefill =
      subject.decode = [=](const Problem& problem, const Values& values, Poison poison) {
        Reply reply = right(problem, values, poison);
        spoil(problem, reply);
        return reply;
      };
  return subject;
}

Subject appending(std::function<void(CacheUpdate&)> change) {
  Subject subject = oracle_subject();
  const auto right = subject.append;
  subject.append = [=](const Problem& problem, const CacheUpdate& asked, Poison poison) {
    CacheUpdate update = asked;
    change(update);
    return right(problem, update, poison);
  };
  return subject;
}

void scale_all(Tensor& tensor, double factor) {
  for (Index flat = 0; flat < tensor.count(); ++flat) tensor.set(flat, tensor.at(flat) * factor);
}

std::vector<Mistake> mistakes_in_masks_and_scores() {
  return {
      {"causal off by one",
       {"oracle_agreement", "decode_agreement", "causality", "recovered_weights"},
       [] {
         return misunderstanding([](Problem& p, Values&) {
           if (!p.causal) return;
           p.causal = false;
           p.window_right = 1;
         });
       }},
      {"scale of a depth padded to 64",
       {"effective_scale", "variance_scaling", "oracle_agreement"},
       [] {
         return misunderstanding([](Problem& p, Values&) {
           const Index padded = (p.depth + 63) / 64 * 64;
           p.scale *= default_scale(padded) / default_scale(p.depth);
         });
       }},
      {"causal mask restarts with each chunk",
       {"cached_equals_recomputed"},
       [] {
         return misunderstanding([](Problem& p, Values&) { p.alignment = Alignment::top_left; });
       }},
      {"empty rows are NaN",
       {"oracle_agreement", "decode_agreement"},
       [] { return misunderstanding([](Problem& p, Values&) { p.empty_row = EmptyRow::nan; }); }},
      {"the last key is lost when keys are split",
       {"decode_agreement"},
       [] {
         return misunderstanding([](Problem& p, Values&) {
           if (p.splits == 1 || p.keys < 2 || p.alibi || !p.key_lengths.empty() || p.causal) return;
           p.key_lengths.assign(static_cast<std::size_t>(p.batch), p.keys - 1);
         });
       }},
      {"the first batch entry's keys serve all",
       {"batch_independence", "oracle_agreement"},
       [] {
         return misunderstanding([](Problem& p, Values& values) {
           const std::size_t bytes = values.k.bytes.size() / static_cast<std::size_t>(p.batch);
           for (std::size_t n = bytes; n < values.k.bytes.size(); ++n) {
             values.k.bytes[n] = values.k.bytes[n % bytes];
           }
         });
       }},
  };
}

std::vector<Mistake> mistakes_in_replies() {
  const auto runs = std::make_shared<int>(0);
  return {
      {"output too large by a thousandth",
       {"row_sums", "oracle_agreement", "recovered_weights", "convexity"},
       [] { return spoiling([](const Problem&, Reply& r) { scale_all(r.o, 1.001); }); }},
      {"weights may be negative",
       {"recovered_weights"},
       [] {
         return spoiling([](const Problem&, Reply& r) {
           for (Index n = 0; n < r.o.count(); ++n) r.o.set(n, r.o.at(n) - 1e-30);
         });
       }},
      {"LSE in the other base",
       {"oracle_agreement", "decode_agreement"},
       [] {
         return spoiling([](const Problem&, Reply& r) { scale_all(r.lse, 1 / std::log(2.0)); });
       }},
      {"one element is NaN",
       {"oracle_agreement", "decode_agreement", "row_sums", "recovered_weights", "convexity",
        "effective_scale", "variance_scaling", "cached_equals_recomputed"},
       [] { return spoiling([](const Problem&, Reply& r) { r.o.set(0, std::nan("")); }); }},
      {"every run differs in the last bit",
       {"rerun", "causality", "batch_independence"},
       [runs] {
         return spoiling([runs](const Problem&, Reply& r) {
           r.o.set_bits(0, r.o.bits(0) ^ static_cast<std::uint32_t>((*runs)++ % 2));
         });
       }},
  };
}

/// An honest subject whose work is changed by `change`.
Subject costing(std::function<void(const Problem&, Counters&)> change) {
  Subject subject = counted(oracle_subject());
  const auto attention = [change](auto compute) {
    return [=](const Problem& problem, const Values& values, Poison poison) {
      Reply reply = compute(problem, values, poison);
      change(problem, reply.counters);
      return reply;
    };
  };
  subject.prefill = attention(subject.prefill);
  subject.decode = attention(subject.decode);
  return subject;
}

std::vector<Mistake> mistakes_in_costs() {
  return {
      {"weights are written, a byte each",
       {"no_score_matrix"},
       [] {
         return costing([](const Problem& p, Counters& c) {
           c.global_written_bytes += p.batch * p.query_heads * p.queries * p.keys;
         });
       }},
      {"each key scans all keys",
       {"work_grows_with_scores", "cached_work"},
       [] { return costing([](const Problem& p, Counters& c) { c.f32_flops *= p.keys; }); }},
      {"the second half of the keys is skipped",
       {"work_grows_with_scores"},
       [] { return costing([](const Problem&, Counters& c) { c.f32_flops /= 4; }); }},
      {"append copies the cache",
       {"cached_work"},
       [] {
         Subject subject = counted(oracle_subject());
         subject.append = [right = subject.append](const Problem& p, const CacheUpdate& u,
                                                   Poison poison) {
           Reply reply = right(p, u, poison);
           reply.counters.global_written_bytes *= p.keys + p.spare_slots;
           return reply;
         };
         return subject;
       }},
      {"the whole prefix is projected for each row",
       {"cached_work"},
       [] {
         Subject subject = counted(oracle_subject());
         subject.projection = [right = subject.projection](const Projection& asked, Poison poison) {
           Reply reply = right(asked, poison);
           reply.counters.f32_flops *= (asked.x.extent[2] + 1) / 2;
           return reply;
         };
         return subject;
       }},
  };
}

std::vector<Mistake> mistakes_with_memory() {
  return {
      {"append off by one",
       {"append_writes_its_slots", "cached_equals_recomputed"},
       [] {
         return appending([](CacheUpdate& u) {
           for (Index& n : u.lengths) ++n;
         });
       }},
      {"append forgets the last row",
       {"append_writes_its_slots", "cached_equals_recomputed"},
       [] {
         return appending([](CacheUpdate& u) {
           for (Index& n : u.new_lengths) n = n > 0 ? n - 1 : 0;
         });
       }},
      {"append clears the slots behind",
       {"append_writes_its_slots"},
       [] {
         return appending([](CacheUpdate& u) {
           for (Tensor* tensor : {&u.k, &u.v}) {
             for (Index c = 0; c < tensor->extent[3]; ++c) {
               tensor->set_bits(tensor->offset(0, 0, tensor->extent[2] - 1, c), 0);
             }
           }
         });
       }},
      {"projection loses the last term",
       {"projection_agreement"},
       [] {
         Subject subject = oracle_subject();
         subject.projection = [right = subject.projection](const Projection& asked, Poison poison) {
           Projection shorter = asked;
           for (Index b = 0; b < asked.x.extent[0]; ++b) {
             for (Index row = 0; row < asked.x.extent[2]; ++row) {
               shorter.x.set(b, 0, row, asked.x.extent[3] - 1, 0);
             }
           }
           return right(shorter, poison);
         };
         return subject;
       }},
  };
}

const Property& property_named(const std::string& name) {
  for (const Property& property : catalogue()) {
    if (property.name == name) return property;
  }
  ADD_FAILURE() << "no property " << name;
  return catalogue().front();
}

/// Whether some cheap case among the first fifty makes `property` refuse `subject`.
bool refuses(const Property& property, const Subject& subject) {
  for (std::uint64_t index = 0; index < 50; ++index) {
    const Case c = draw_case(property.name, 5, index);
    if (!is_cheap(c.problem) && property.name != "variance_scaling") continue;
    const Verdict verdict = property.check(subject, c.problem, make_values(c));
    if (verdict.outcome != Outcome::violated) continue;
    EXPECT_FALSE(verdict.why.empty());
    return true;
  }
  return false;
}

TEST(Properties, EachRefusesItsMistakes) {
  std::vector<Mistake> all = mistakes_in_masks_and_scores();
  for (const auto& more : {mistakes_in_replies(), mistakes_with_memory(), mistakes_in_costs()}) {
    all.insert(all.end(), more.begin(), more.end());
  }
  std::vector<std::string> proven;
  for (const Mistake& mistake : all) {
    for (const std::string& name : mistake.seen_by) {
      EXPECT_TRUE(refuses(property_named(name), mistake.subject()))
          << mistake.name << " / " << name;
      proven.push_back(name);
    }
  }
  for (const Property& property : catalogue()) {
    EXPECT_NE(std::find(proven.begin(), proven.end(), property.name), proven.end())
        << property.name << " has refused nothing yet";
  }
}

// Leaked poison: a subject that reads behind the keys, and lets what it finds touch the output.
TEST(Properties, CausalitySeesPoison) {
  Subject subject = oracle_subject();
  subject.prefill =
      subject.decode = [right = subject.prefill](const Problem& p, const Values& v, Poison poison) {
        Reply reply = right(p, v, poison);
        if (poison == Poison::small) reply.o.set(0, reply.o.at(0) * 1.5 + 1);
        return reply;
      };
  const Case c = parse_case("q=1x1x2x4 kv=1x3x4 spare=2");
  const Verdict verdict = property_named("causality").check(subject, c.problem, make_values(c));
  EXPECT_EQ(verdict.outcome, Outcome::violated);
  EXPECT_NE(verdict.why.find("poison"), std::string::npos) << verdict.why;
}

TEST(Properties, FaultsAndRefusalsAreNotVerdictsOnNumbers) {
  Subject faulty = oracle_subject(), choosy = oracle_subject(), misshapen = oracle_subject();
  faulty.prefill = faulty.decode = [](const Problem&, const Values&, Poison) {
    Reply reply;
    reply.fault = Fault{"memcheck", "read behind k"};
    return reply;
  };
  faulty.append = [](const Problem&, const CacheUpdate&, Poison) {
    Reply reply;
    reply.fault = Fault{"memcheck", "read behind k"};
    return reply;
  };
  faulty.projection = [](const Projection&, Poison) {
    Reply reply;
    reply.fault = Fault{"memcheck", "read behind k"};
    return reply;
  };
  choosy.declines = [](Operation, const Problem&) { return std::string("not today"); };
  misshapen.prefill =
      misshapen.decode = [](const Problem&, const Values&, Poison) { return Reply{}; };
  misshapen.append = [](const Problem&, const CacheUpdate&, Poison) { return Reply{}; };
  misshapen.projection = [](const Projection&, Poison) { return Reply{}; };
  for (const Property& property : catalogue()) {
    const Case c = draw_case(property.name, 1, 0);  // a hard case: there is something to ask
    const Values values = make_values(c);
    const Verdict fault = property.check(faulty, c.problem, values);
    EXPECT_EQ(fault.outcome, Outcome::faulted) << property.name;
    EXPECT_NE(fault.why.find("read behind k"), std::string::npos) << fault.why;
    const Verdict decline = property.check(choosy, c.problem, values);
    EXPECT_EQ(decline.outcome, Outcome::declined) << property.name;
    EXPECT_NE(decline.why.find("not today"), std::string::npos) << decline.why;
    EXPECT_EQ(property.check(misshapen, c.problem, values).outcome, Outcome::faulted)
        << property.name;
    EXPECT_EQ(property.check(Subject{}, c.problem, values).outcome, Outcome::declined)
        << property.name;
  }
}

// A subject that promises nothing may change its last bits; one that leaks may not.
TEST(Properties, WithoutAPromiseOfBitsTheBoundDecides) {
  Subject wobbling = tiled_subject(16);
  wobbling.description.deterministic = false;
  const auto runs = std::make_shared<int>(0);
  wobbling.prefill = [right = wobbling.prefill, runs](const Problem& p, const Values& v, Poison n) {
    Reply reply = right(p, v, n);
    reply.o.set_bits(0, reply.o.bits(0) ^ static_cast<std::uint32_t>((*runs)++ % 2));
    return reply;
  };
  const Case c = parse_case("q=1x1x4x8 kv=1x9x4 causal fill=normal");
  const Values values = make_values(c);
  EXPECT_EQ(property_named("causality").check(wobbling, c.problem, values).outcome, Outcome::holds);
  EXPECT_EQ(property_named("rerun").check(wobbling, c.problem, values).outcome, Outcome::declined);
  wobbling.description.deterministic = true;
  EXPECT_EQ(property_named("causality").check(wobbling, c.problem, values).outcome,
            Outcome::violated);
}

TEST(Properties, CostsOfASubjectThatCountsNothingAreDeclined) {
  for (const char* name : {"no_score_matrix", "work_grows_with_scores", "cached_work"}) {
    const Case c = draw_case(name, 1, 0);
    const Verdict verdict = property_named(name).check(oracle_subject(), c.problem, make_values(c));
    EXPECT_EQ(verdict.outcome, Outcome::declined) << name;
    EXPECT_NE(verdict.why.find("counts nothing"), std::string::npos) << verdict.why;
  }
}

TEST(Properties, ConditionsThatDoNotApplyAreVacuous) {
  const auto outcome = [](const std::string& property, const std::string& line) {
    const Case c = parse_case(line);
    return property_named(property).check(oracle_subject(), c.problem, make_values(c)).outcome;
  };
  EXPECT_EQ(outcome("variance_scaling", "q=1x1x9x4 kv=1x2x2 fill=normal"), Outcome::vacuous);
  EXPECT_EQ(outcome("effective_scale", "q=1x1x9x4 kv=1x3x2"), Outcome::vacuous);
  EXPECT_EQ(outcome("cached_equals_recomputed", "q=1x1x3x4 kv=1x3x2"), Outcome::vacuous);
  EXPECT_EQ(outcome("batch_independence", "q=1x1x3x4 kv=1x3x2"), Outcome::vacuous);
  EXPECT_EQ(outcome("recovered_weights", "q=1x1x3x4 kv=1x0x2"), Outcome::vacuous);
  EXPECT_EQ(outcome("no_score_matrix", "q=1x1x64x4 kv=1x64x16"), Outcome::vacuous);
  EXPECT_EQ(outcome("work_grows_with_scores", "q=1x1x2x4 kv=1x127x4"), Outcome::vacuous);
  EXPECT_EQ(outcome("work_grows_with_scores", "q=1x1x2x4 kv=1x128x4 causal"), Outcome::vacuous);
  EXPECT_EQ(outcome("cached_work", "q=1x1x2x4 kv=1x64x4"), Outcome::vacuous);
  EXPECT_EQ(outcome("oracle_agreement", "q=1x1x3x4 kv=1x3x2 q_len=0"), Outcome::vacuous);
}

}  // namespace
}  // namespace attest
