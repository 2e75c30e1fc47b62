// The proven radius holds: the 100-digit value lies in it, on every kind of hostile input; each
// tier is reached, and what cannot be proven is not claimed.
#include "reference/oracle/certified.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>

#include "reference/bound/hostile_values.hpp"
#include "reference/random_problem.hpp"
#include "reference/random_values.hpp"

namespace attest {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// Elements compared, and the largest error / radius among them.
struct Containment {
  Index elements = 0, violations = 0;
  double largest = 0;
  Index over_a_thousandth = 0;  // how many errors exceed radius / 1000

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

  void add(const Problem& p, const Certified& certified, const Truth& truth) {
    const Truth& value = certified.truth;
    ASSERT_EQ(value.o.size(), truth.o.size());
    for (std::size_t i = 0; i < truth.o.size(); ++i) {
      add(value.o[i], value.o_tail[i], certified.o_radius[i], truth.o[i], truth.o_tail[i]);
    }
    for (std::size_t i = 0; i < truth.lse.size(); ++i) {
      add(value.lse[i], value.lse_tail[i], certified.lse_radius[i], truth.lse[i],
          truth.lse_tail[i]);
    }
    ASSERT_EQ(violations, 0) << print(p);
  }
};

/// A demand that double meets in some rows only: a random part of what double gives.
Demand demand_below(const Certified& certified, std::mt19937_64& random) {
  Demand demand{certified.o_radius, certified.lse_radius};
  const double part = std::ldexp(1.0, -static_cast<int>(random() % 400));
  for (auto* asked : {&demand.o, &demand.lse}) {
    for (double& each : *asked) {
      if (random() % 8 == 0) each *= part;
    }
  }
  return demand;
}

TEST(Certified, TheHundredDigitValueLiesWithinTheRadius) {
  std::mt19937_64 random(21);
  std::map<std::string, Containment> by_change;
  std::array<Index, kTierNames.size()> rows{};
  Index elements = 0, over_a_thousandth = 0;
  for (std::size_t round = 0; elements < 2'000'000; ++round) {
    Problem p = random_problem(random, 12);
    const HostileChange& hostile = kHostileChanges[round % std::size(kHostileChanges)];
    // Mostly the changes decide how large the logits are; one Problem in four keeps its scale.
    if (round % 4 != 0 && std::fabs(p.scale) > 4) p.scale = default_scale(p.depth);
    Values values = random_values(p, random);
    hostile.change(p, values, random);
    const Truth truth = exact_attention(p, values, Digits::hundred);
    Containment& found = by_change[hostile.name];
    const Index before = found.elements;
    const Certified certified = certified_attention(p, values);
    found.add(p, certified, truth);
    for (std::size_t row = 0; row < certified.tier.size(); ++row) {
      ++rows[static_cast<std::size_t>(certified.tier[row])];
    }
    if (round % 16 == 0) {
      const Certified asked = certified_attention(p, values, demand_below(certified, random));
      found.add(p, asked, truth);
      const auto counts = asked.rows_of_tiers();
      for (std::size_t tier = 0; tier < rows.size(); ++tier) rows[tier] += counts[tier];
    }
    if (HasFatalFailure()) return;
    elements += found.elements - before;
  }
  std::printf("%-28s %9s %14s\n", "change of the values", "elements", "error / radius");
  for (const auto& [name, found] : by_change) {
    std::printf("%-28s %9lld %14.4f\n", name.c_str(), static_cast<long long>(found.elements),
                found.largest);
    over_a_thousandth += found.over_a_thousandth;
  }
  for (std::size_t tier = 0; tier < rows.size(); ++tier) {
    std::printf("%-14.14s %9lld rows\n", kTierNames[tier].data(),
                static_cast<long long>(rows[tier]));
  }
  // So near is the radius to what happens: a thousandth of it would be refused many times.
  EXPECT_GT(over_a_thousandth, elements / 1000);
}

}  // namespace
}  // namespace attest
