// Which of the twelve defects of reference/model raise an alarm on 128 rows, on the very outputs
// that reference/bound/detection.md judges by bounds; and on the same with an f32 output. The
// table of README.md, "Tests".
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <set>

#include "reference/model/detection.hpp"
#include "reference/statistics/testing/cells.hpp"

namespace attest {
namespace {

constexpr std::array<Format, 2> kOutputs = {Format::bf16, Format::f32};

/// The first test that says so.
std::string found_by(const ZSummary& z) {
  return z.alarms.empty() ? "-" : z.alarms[0].test;
}

TEST(DefectsFound, OnTheOutputsThatTheBoundsJudge) {
  std::array<std::set<Defect>, 2> missed;  // anywhere, by output
  for (Index keys : {64, 1024}) {
    for (bool one_sign : {false, true}) {
      DetectionCase which = detection_case(keys, one_sign);
      std::array<LikelyErrors, kOutputs.size()> likely;
      for (std::size_t output = 0; output < kOutputs.size(); ++output) {
        which.problem.output = kOutputs[output];
        likely[output] = likely_errors(which.problem, which.values, which.path);
      }
      std::printf("%lld keys, %s: out bf16, out f32\n", static_cast<long long>(keys),
                  one_sign ? "V > 0" : "N(0, 1)");
      for (std::size_t n = 0; n < kDefectNames.size(); ++n) {
        const auto defect = static_cast<Defect>(n);
        std::printf("  %-18s", std::string(kDefectNames[n]).c_str());
        for (std::size_t output = 0; output < kOutputs.size(); ++output) {
          Problem& p = which.problem;
          p.output = kOutputs[output];
          ZTally tally;
          tally.add(p, which.path, modelled(p, which.values, which.path, defect), likely[output]);
          const std::optional<ZSummary> z = tally.summary();
          ASSERT_TRUE(z) << tally.why_not();
          std::printf(" %-12s", found_by(*z).c_str());
          if (defect == Defect::none) {
            EXPECT_EQ(alarms_of(*z), "");
          }
          if (z->alarms.empty()) missed[output].insert(defect);
        }
        std::printf("\n");
      }
    }
  }
  for (const auto& of_output : missed) {
    for (Defect defect : {Defect::p_truncated, Defect::key_dropped, Defect::sum_misses_key,
                          Defect::rows_swapped, Defect::key_leaked}) {
      EXPECT_FALSE(of_output.contains(defect)) << kDefectNames[static_cast<std::size_t>(defect)];
    }
  }
  EXPECT_FALSE(missed[0].contains(Defect::output_truncated));
  EXPECT_FALSE(missed[1].contains(Defect::scores_in_bf16));
}

}  // namespace
}  // namespace attest
