// What is found of a subject by asking it: values that are accepted alone, in company and in pairs,
// and that the plan holds every pair.
#include "properties/domains/pairs.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "properties/domains/domain.hpp"
#include "properties/domains/fitted.hpp"
#include "reference/text.hpp"

namespace attest {
namespace {

using Accepted = bool (*)(const Problem&);

Subject decode_only(Accepted accepted) {
  Subject subject;
  subject.offered.set(static_cast<std::size_t>(Operation::decode));
  subject.call = [](const Request&, Poison) { return Reply{}; };
  subject.declines = [accepted](Operation, const Problem& p) {
    return accepted(p) ? std::nullopt : std::optional<std::string>("not this");
  };
  return subject;
}

ServedOperation decode_of(Accepted accepted) {
  return probe(decode_only(accepted)).of(Operation::decode);
}

/// bf16 alone; an 8-bit cache on pages only, and scaled; a mask or causal, not both.
bool narrow(const Problem& p) {
  const bool narrow_cache = p.cache && *p.cache != Format::bf16;
  return p.input == Format::bf16 && p.output == Format::bf16 && !(p.mask && p.causal) &&
         (!narrow_cache || (p.page_size > 0 && p.scales == Scales::token &&
                            (*p.cache == Format::e4m3 || *p.cache == Format::i8)));
}

bool together(const Pairs& pairs, const std::string& a, const std::string& b) {
  return pairs.together.at(pairs.number.at(a)).at(pairs.number.at(b));
}

TEST(Pairs, AreWhatIsAcceptedInOneProblem) {
  const Pairs pairs = decode_of(narrow).pairs;
  EXPECT_TRUE(together(pairs, "mask", "bias"));
  EXPECT_TRUE(together(pairs, "mask", "no causal"));
  EXPECT_FALSE(together(pairs, "mask", "causal"));
  EXPECT_FALSE(pairs.number.contains("in=f16 out=f16"));
  EXPECT_FALSE(pairs.number.contains("rope=pairs")) << "decode does not read it";
}

TEST(Pairs, AValueThatNeedsCompanyIsFound) {
  const ServedOperation served = decode_of(narrow);
  EXPECT_TRUE(together(served.pairs, "cache=e4m3 scales=token", "pages"));
  EXPECT_TRUE(together(served.pairs, "cache=e4m3 scales=token", "causal"));
  EXPECT_FALSE(together(served.pairs, "cache=e4m3 scales=token", "no pages"));
  EXPECT_FALSE(served.pairs.number.contains("cache=e4m3 scales=head"));
  EXPECT_FALSE(served.pairs.number.contains("cache=e5m2 scales=token"));
}

TEST(Pairs, EachIsInAProblemOfThePlan) {
  for (const Accepted accepted :
       {Accepted(narrow), Accepted([](const Problem&) { return true; })}) {
    const ServedOperation served = decode_of(accepted);
    Pairs met = served.pairs;
    for (std::vector<bool>& row : met.together) row.assign(row.size(), false);
    for (const Problem& problem : served.plan) {
      EXPECT_TRUE(accepted(problem));
      EXPECT_EQ(invalidity(problem), "");
      const auto kinds = kinds_of(served.pairs, Operation::decode, problem);
      for (const std::size_t a : kinds) {
        for (const std::size_t b : kinds) met.together[a][b] = true;
      }
    }
    for (std::size_t a = 0; a < met.kinds.size(); ++a) {
      for (std::size_t b = 0; b < met.kinds.size(); ++b) {
        if (!served.pairs.together[a][b]) continue;
        EXPECT_TRUE(met.together[a][b]) << met.kinds[a] << " with " << met.kinds[b];
      }
    }
    EXPECT_GT(served.pairs.count(), 500U);
    EXPECT_LT(served.plan.size(), served.pairs.count() / 4) << "each holds many";
  }
}

TEST(Pairs, PlannedCasesAreAcceptedAndHaveTheirFeaturesAndExtents) {
  const Subject subject = decode_only(narrow);
  const Served served = probe(subject);
  const ServedOperation& there = served.of(Operation::decode);
  std::set<std::string> words;
  std::uint64_t as_planned = 0;
  const std::uint64_t count = std::max(there.plan.size(), there.extents.size());
  for (std::uint64_t n = 0; n < count; ++n) {
    const Case drawn = draw_case("decode_agreement", 1, 1000 + n);
    const Case made = planned(drawn, "decode_agreement", subject, served, n);
    EXPECT_TRUE(narrow(made.problem));
    EXPECT_EQ(made.seed, drawn.seed);
    const auto kinds = [&](const Problem& p) {
      return kinds_of(there.pairs, Operation::decode, p);
    };
    if (kinds(made.problem) == kinds(there.plan[n % there.plan.size()])) ++as_planned;
    for (const Dimension& dimension : dimensions()) words.insert(dimension.word(made.problem));
  }
  // An extent may bring heads of another kind: a fifth of all are numbers of heads.
  EXPECT_GT(as_planned, count * 2 / 3);
  for (const char* word : {"head_dim=112", "num_heads_kv=1 group=32", "page_size=256", "batch=9"}) {
    EXPECT_TRUE(words.contains(word)) << word;
  }
}

TEST(Pairs, AKernelThatInsistsOnMuchAtOnceIsFound) {
  // Four things at once, each of them rare.
  const Subject subject = decode_only([](const Problem& p) {
    return p.cache == Format::e4m3 && p.scales == Scales::token && p.page_size > 0 &&
           p.input == Format::bf16;
  });
  const Served served = probe(subject);
  const ServedOperation& there = served.of(Operation::decode);
  ASSERT_TRUE(there.base);
  EXPECT_FALSE(there.base->mask || there.base->bias || there.base->sinks) << "made plain";
  EXPECT_TRUE(together(there.pairs, "causal", "splits"));
  for (std::uint64_t n = 100; n < 200; ++n) {
    const Case drawn = draw_case("convexity", 1, n);
    EXPECT_TRUE(
        accepts(subject, Operation::decode, fitted(drawn, "convexity", subject, served).problem));
    const Case bits = draw_case("recovered_weights", 1, n);
    EXPECT_EQ(fitted(bits, "recovered_weights", subject, served), bits)
        << "it needs the bits that were given, which such a cache does not hold";
  }
}

TEST(Pairs, WhatAPropertyNeedsIsNotPlannedAway) {
  const Subject subject = decode_only([](const Problem&) { return true; });
  const Served served = probe(subject);
  for (std::uint64_t n = 0; n < 100; ++n) {
    const Case drawn = draw_case("variance_scaling", 1, 100 + n);
    EXPECT_EQ(planned(drawn, "variance_scaling", subject, served, n), drawn);
    const Case path =
        planned(draw_case("quantised_path", 1, 100 + n), "quantised_path", subject, served, n);
    EXPECT_GT(path.problem.page_size, 0);
    EXPECT_TRUE(path.problem.cache);
  }
}

}  // namespace
}  // namespace attest
