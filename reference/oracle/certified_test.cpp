// The proven radius holds: the 100-digit value lies in it, on every kind of hostile input; each
// tier is reached, and what cannot be proven is not claimed.
#include "reference/oracle/certified.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>

#include "reference/bound/testing/hostile_values.hpp"
#include "reference/oracle/tiers.hpp"
#include "reference/random_values.hpp"
#include "reference/testing/random_problem.hpp"

namespace attest {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// Elements compared, and the largest error / radius among them.
struct Containment {
  Index elements = 0, violations = 0;
  Index over_a_thousandth = 0;  // how many errors exceed radius / 1000
  double largest = 0;

  void add(double value, double tail, double radius, double truth, double truth_tail) {
    ++elements;
    if (!std::isfinite(truth) || !std::isfinite(value)) {
      violations += value == truth || (std::isnan(value) && std::isnan(truth)) ? 0 : 1;
      return;
    }
    // The 100-digit value is known here as head and tail, each rounded to nearest.
    const double known = 0x1p-105 * std::fabs(truth) + 0x1p-1073;
    const double error = std::max(0.0, std::fabs((value - truth) + (tail - truth_tail)) - known);
    if (!(error <= radius)) ++violations;
    if (error > radius / 1000) ++over_a_thousandth;
    if (error > 0 && radius < kInfinity) largest = std::max(largest, error / radius);
  }

  void add(const Containment& other) {
    elements += other.elements;
    violations += other.violations;
    over_a_thousandth += other.over_a_thousandth;
    largest = std::max(largest, other.largest);
  }
};

Containment compare_row(const Certified& certified, const Truth& truth, std::size_t row) {
  const Truth& value = certified.truth;
  Containment found;
  const auto width = static_cast<std::size_t>(truth.extent[3]);
  for (std::size_t i = row * width; i < (row + 1) * width; ++i) {
    found.add(value.o[i], value.o_tail[i], certified.o_radius[i], truth.o[i], truth.o_tail[i]);
  }
  found.add(value.lse[row], value.lse_tail[row], certified.lse_radius[row], truth.lse[row],
            truth.lse_tail[row]);
  return found;
}

/// Adds the 100-digit value's own radius where the value was computed more precisely than that:
/// what cancels to 0 there is 10^-100 of its terms here.
void allow_for_a_hundred_digits(const Problem& p, const Values& values, Certified& certified) {
  std::vector<std::size_t> rows;
  for (std::size_t row = 0; row < certified.tier.size(); ++row) {
    if (certified.tier[row] == Tier::two_hundred) rows.push_back(row);
  }
  Certified hundred = certified;
  oracle::redo_in_digits(p, values, Tier::hundred, rows, hundred);
  const auto width = static_cast<std::size_t>(p.head_dim_v);
  for (std::size_t row : rows) {
    certified.lse_radius[row] += hundred.lse_radius[row];
    for (std::size_t at = row * width; at < (row + 1) * width; ++at) {
      certified.o_radius[at] += hundred.o_radius[at];
    }
  }
}

/// A demand that double meets in some rows only: a random part of what double gives.
Demand demand_below(const Certified& certified, std::mt19937_64& random) {
  Demand demand{certified.o_radius, certified.lse_radius};
  const int most = random() % 4 == 0 ? 400 : 90;
  const double part = std::ldexp(1.0, -static_cast<int>(random() % most));
  for (auto* asked : {&demand.o, &demand.lse}) {
    for (double& each : *asked) {
      if (random() % 8 == 0) each *= part;
    }
  }
  return demand;
}

struct Table {
  std::map<std::string, Containment> lines;

  void print(const char* title) const {
    std::printf("%-26s %10s %10s %15s\n", title, "elements", "violations", "error / radius");
    for (const auto& [name, found] : lines) {
      std::printf("%-26s %10lld %10lld %15.4f\n", name.c_str(),
                  static_cast<long long>(found.elements), static_cast<long long>(found.violations),
                  found.largest);
    }
  }
};

TEST(Certified, TheHundredDigitValueLiesWithinTheRadius) {
  std::mt19937_64 random(21);
  Table by_change, by_tier;
  Containment all;
  for (std::size_t round = 0; all.elements < 2'000'000; ++round) {
    Problem p = random_problem(random, 12);
    const HostileChange& hostile = kHostileChanges[round % std::size(kHostileChanges)];
    // Mostly the changes decide how large the logits are; one Problem in four keeps its scale.
    if (round % 4 != 0 && std::fabs(p.softmax_scale) > 4)
      p.softmax_scale = default_scale(p.head_dim);
    Values values = random_values(p, random);
    hostile.change(p, values, random);
    const Truth truth = exact_attention(p, values, Digits::hundred);
    Certified certified = certified_attention(p, values);
    if (round % 16 == 0) {
      certified = certified_attention(p, values, demand_below(certified, random));
      allow_for_a_hundred_digits(p, values, certified);
    }
    for (std::size_t row = 0; row < certified.tier.size(); ++row) {
      const Containment found = compare_row(certified, truth, row);
      ASSERT_EQ(found.violations, 0) << print(p) << ", row " << row;
      const auto tier = static_cast<std::size_t>(certified.tier[row]);
      all.add(found);
      by_change.lines[hostile.name].add(found);
      by_tier.lines[std::string(kTierNames[tier])].add(found);
    }
  }
  by_change.print("change of the values");
  by_tier.print("tier");
  EXPECT_GE(by_tier.lines.size(), 4U);  // ASumThatCancels... reaches each
  // So near is the radius to what happens: a thousandth of it would be refused many times.
  EXPECT_GT(all.over_a_thousandth, all.elements / 100);
  EXPECT_GT(by_tier.lines["double_double"].over_a_thousandth, 0);
}

struct Row {
  Problem problem;
  Values values;
  Truth truth(Digits digits = Digits::hundred) const {
    return exact_attention(problem, values, digits);
  }
};

/// One query on two keys with logits 0 and `logit`.
Row two_keys(double logit) {
  Row row{{.seqlen_kv = 2}, {}};
  row.values = zero_values(row.problem);
  row.values.q.set(0, 1);
  row.values.k.set(1, logit);
  row.values.v.set(0, 1);
  row.values.v.set(1, 2);
  return row;
}

TEST(Certified, ADemandIsMetByTheFirstTierThatCan) {
  const Row row = two_keys(-1);
  const struct {
    double part;
    Tier tier;
  } kDemands[] = {{1e-14, Tier::f64},
                  {1e-20, Tier::double_double},
                  {1e-27, Tier::double_double},
                  {3e-31, Tier::fifty}};
  for (const auto& [part, tier] : kDemands) {
    const Certified certified = certified_attention(row.problem, row.values, {{part}, {kInfinity}});
    EXPECT_EQ(certified.tier[0], tier) << part;
    EXPECT_LE(certified.o_radius[0], part);
    EXPECT_EQ(compare_row(certified, row.truth(), 0).violations, 0);
    EXPECT_EQ(certified.rows_of_tiers()[static_cast<std::size_t>(tier)], 1);
  }
  // Head and tail end at 106 bits: nothing can be this sure, and 200 digits do not say they are.
  const Certified certified = certified_attention(row.problem, row.values, {{1e-60}, {kInfinity}});
  EXPECT_EQ(certified.tier[0], Tier::two_hundred);
  EXPECT_GT(certified.o_radius[0], 1e-60);
}

// Values that cancel: 0, of which every tier is surer.
TEST(Certified, ASumThatCancelsTakesAsManyDigitsAsAreAsked) {
  Row row = two_keys(0);
  row.values.v.set(1, -1);
  const struct {
    double part;
    Tier tier;
  } kDemands[] = {{1e-14, Tier::f64},
                  {1e-29, Tier::double_double},
                  {1e-48, Tier::fifty},
                  {1e-70, Tier::hundred},
                  {1e-150, Tier::two_hundred}};
  for (const auto& [part, tier] : kDemands) {
    const Certified certified = certified_attention(row.problem, row.values, {{part}, {kInfinity}});
    EXPECT_EQ(certified.tier[0], tier) << part;
    EXPECT_LE(std::fabs(certified.truth.o[0] + certified.truth.o_tail[0]), certified.o_radius[0]);
    EXPECT_LE(certified.o_radius[0], part);
  }
}

// Logits of 10^23 that differ by one: double does not know which is larger, nor does it say so.
TEST(Certified, LogitsBeyondDoubleTakeMoreDigits) {
  Row row{{.seqlen_kv = 2, .head_dim = 3}, {}};
  row.values = zero_values(row.problem);
  const double large = 1e12F;
  const double q[] = {large, large, 1}, k[] = {large, -large, 0, large, -large, 1};
  for (Index c = 0; c < 3; ++c) row.values.q.set(c, q[c]);
  for (Index c = 0; c < 6; ++c) row.values.k.set(c, k[c]);
  row.values.v.set(1, 1);
  const Certified certified = certified_attention(row.problem, row.values);
  EXPECT_EQ(certified.tier[0], Tier::double_double);
  EXPECT_NEAR(certified.truth.o[0], 1 / (1 + std::exp(-1.0)), certified.o_radius[0] + 1e-15);
  EXPECT_EQ(compare_row(certified, row.truth(), 0).violations, 0);
  // No radius is asked for: none is worked for.
  EXPECT_EQ(certified_attention(row.problem, row.values, {{kInfinity}, {kInfinity}}).tier[0],
            Tier::f64);
}

TEST(Certified, WhatIsNotFiniteIsTheExactOraclesBusiness) {
  for (double odd : {kNaN, kInfinity, -kInfinity}) {
    for (int place = 0; place < 6; ++place) {
      Problem p{.num_heads_q = 2,
                .num_heads_kv = 2,
                .seqlen_q = 3,
                .seqlen_kv = 4,
                .head_dim = 2,
                .head_dim_v = 3};
      p.causal = p.bias = p.sinks = p.alibi = true;
      std::mt19937_64 random(5);
      Values values = random_values(p, random);
      if (place == 0) values.q.set(3, odd);
      if (place == 1) values.k.set(5, odd);
      if (place == 2) values.v.set(7, odd);
      if (place == 3) values.bias->set(4, odd);
      if (place == 4) values.sinks->set(1, odd);
      if (place == 5) values.alibi_slopes->set(0, odd);
      const Certified certified = certified_attention(p, values);
      const Truth truth = exact_attention(p, values, Digits::hundred);
      Index exact = 0;
      for (std::size_t row = 0; row < certified.tier.size(); ++row) {
        EXPECT_EQ(compare_row(certified, truth, row).violations, 0) << odd << " " << place;
        EXPECT_TRUE(!std::isnan(truth.lse[row]) || certified.tier[row] == Tier::fifty);
        exact += certified.tier[row] == Tier::fifty ? 1 : 0;
      }
      EXPECT_LT(exact, 6);                                       // the other head never saw it
      const bool hides = (place == 3 || place == 4) && odd < 0;  // a key, or nothing
      EXPECT_EQ(exact > 0, !hides) << odd << " " << place;
    }
  }
}

TEST(Certified, RowsWithoutKeysAreExact) {
  Row row{
      {.seqlen_q = 3, .seqlen_kv = 2, .head_dim_v = 2, .causal = true, .empty_row = EmptyRow::nan},
      {}};
  row.problem.seqlens_q = {3};
  row.values = zero_values(row.problem);
  const Certified certified = certified_attention(row.problem, row.values);
  EXPECT_TRUE(std::isnan(certified.truth.o[0]));
  EXPECT_EQ(certified.truth.lse[0], -kInfinity);
  EXPECT_EQ(certified.o_radius[0], 0);
  EXPECT_EQ(certified.lse_radius[0], 0);
  EXPECT_EQ(certified.truth.o[2], 0.0);
  EXPECT_EQ(certified.rows_of_tiers()[0], 3);
  row.problem.seqlens_q = {0};  // behind its length nothing is said
  EXPECT_EQ(certified_attention(row.problem, row.values).truth.o[0], 0.0);
}

// 64 rows are computed at a time: lengths around that, windows and masks on either side of it.
TEST(Certified, TilesLeaveNoSeam) {
  std::mt19937_64 random(9);
  for (Index queries : {63, 64, 65, 130}) {
    for (Index window : {Index{0}, Index{1}, Index{70}, kUnbounded}) {
      Problem p{.seqlen_q = queries, .seqlen_kv = 131, .head_dim = 3, .head_dim_v = 2};
      p.softmax_scale = 0.5F;
      p.causal = window != 70;
      p.window_left = window;
      p.window_right = window == 1 ? 3 : kUnbounded;
      p.mask = window == 0 || window == 70;
      const Values values = random_values(p, random);
      const Certified certified = certified_attention(p, values);
      const Truth truth = exact_attention(p, values);
      for (std::size_t row = 0; row < truth.lse.size(); ++row) {
        ASSERT_EQ(compare_row(certified, truth, row).violations, 0) << print(p) << " " << row;
        ASSERT_LT(certified.lse_radius[row], 1e-12);
      }
    }
  }
}

// Memory is O(T d). The rows of a window take the time of few keys and the memory of all.
TEST(Certified, ALongHeadTakesLittleMemory) {
  Problem p{.seqlen_q = 32768, .seqlen_kv = 32768, .head_dim = 128, .head_dim_v = 128};
  p.causal = true;
  p.window_left = 2;
  Values values = zero_values(p);
  for (Index i = 0; i < values.v.count(); ++i) values.v.set(i, static_cast<double>(i / 128));
  const Certified certified = certified_attention(p, values);
  EXPECT_NEAR(certified.truth.o[1000 * 128], 999, 999 * 0x1p-50);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
#ifdef __SANITIZE_ADDRESS__
  constexpr long kMost = 1024 * 1024;  // it keeps what was freed
#else
  constexpr long kMost = 512 * 1024;  // KiB, as Linux counts
#endif
  EXPECT_LT(usage.ru_maxrss, kMost);
}

}  // namespace
}  // namespace attest
