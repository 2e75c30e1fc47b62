// A measurement against an earlier one: harmless changes pass, defects that no bound refuses do
// not.
#include "reports/measurement_comparison.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <span>

#include "properties/oracle_subject.hpp"
#include "reference/model/model.hpp"
#include "reference/text.hpp"

namespace attest {
namespace {

constexpr const char* kCases[] = {"q=1x1x48x32 kv=1x96x32 causal in=bf16 out=bf16",
                                  "q=1x1x48x32 kv=1x96x32 causal in=bf16 fill=one_signed"};

/// A kernel of a declared path: right, or wrong on purpose.
Subject modelled(const Model& model, Index block = 16) {
  Subject subject;
  PrecisionPath& path = subject.description.precision;
  path.p_format = Format::bf16;
  path.exp_error = 0x1p-21;
  path.keys_per_rescale =
      block;  // and of the order of work nothing, so that the bound is a wide one
  subject.offered.set(static_cast<std::size_t>(Operation::prefill));
  subject.call = [path, model](const Request& request, Poison) {
    const auto& [operation, p, values] = std::get<Attend>(request);
    const Modelled made = model_attention(p, values, path, model);
    Reply reply;
    reply.o = Tensor(p.output, {p.batch, p.num_heads_q, p.seqlen_q, p.head_dim_v});
    reply.lse = Tensor(Format::f32, {p.batch, p.num_heads_q, p.seqlen_q, 1});
    for (Index i = 0; i < reply.o.count(); ++i) reply.o.set(i, made.o[static_cast<std::size_t>(i)]);
    for (Index i = 0; i < reply.lse.count(); ++i)
      reply.lse.set(i, made.lse[static_cast<std::size_t>(i)]);
    return reply;
  };
  return subject;
}

Measurement measured(const Subject& subject, std::span<const char* const> lines = kCases) {
  Measurement measurement;
  for (const char* line : lines) {
    measurement.cells.push_back(measure_cell(subject, Operation::prefill, parse_case(line)));
    EXPECT_EQ(measurement.cells.back().verdict.outcome, Outcome::holds)
        << measurement.cells.back().verdict.why;
  }
  return measurement;
}

Measurement defective(Defect defect, std::span<const char* const> lines = kCases) {
  return measured(modelled({.exact = {}, .defect = defect, .freedom = {}}), lines);
}

std::uint64_t worse(const MeasurementComparison& comparison) {
  std::uint64_t count = 0;
  for (const CellChange& change : comparison.changes) count += change.rows.worse ? 1 : 0;
  return count;
}

TEST(MeasurementComparison, NothingIsWorseThanItself) {
  const Measurement right = defective(Defect::none);
  const MeasurementComparison comparison = compared(right, right);
  ASSERT_EQ(comparison.changes.size(), 2U);
  for (const CellChange& change : comparison.changes) {
    EXPECT_EQ(change.rows.errors.changed, 0);
    EXPECT_FALSE(change.rows.worse || change.rows.better);
    EXPECT_EQ(change.rows.why + change.warning, "");
  }
  EXPECT_EQ(exit_code_of(comparison), 0);
  EXPECT_NE(comparison_text(comparison, right, 100).find("2 with the same figures to the last bit"),
            std::string::npos);
}

TEST(MeasurementComparison, HarmlessChangesAreNotWorse) {
  const Measurement right = defective(Defect::none);
  Freedom two_steps;
  two_steps.fused_exponent = false;
  Freedom noisy;
  noisy.exp_share = [](Index row, Index key) { return (row * 31 + key * 17) % 13 / 6.0 - 1; };
  struct Harmless {
    Subject subject;
    int changed;  // rows, at least; or there is nothing to see
  };
  const Harmless all[] = {{modelled({.exact = {}, .freedom = two_steps}), 10},
                          {modelled({.exact = {}, .freedom = noisy}), 10},
                          {modelled({}, 48), 60}};
  for (const auto& [subject, least] : all) {
    const Measurement other = measured(subject);
    const MeasurementComparison comparison = compared(right, other);
    int changed = 0;  // by however little
    for (std::size_t i = 0; i < right.cells.size(); ++i) {
      const std::vector<double>&a = right.cells[i].rows.square, &b = other.cells[i].rows.square;
      for (std::size_t row = 0; row < a.size(); ++row) changed += a[row] != b[row] ? 1 : 0;
    }
    EXPECT_GE(changed, least);
    EXPECT_EQ(exit_code_of(comparison), 0) << comparison_text(comparison, other, 100);
    EXPECT_EQ(exit_code_of(compared(other, right)), 0);
  }
}

TEST(MeasurementComparison, DefectsWithinTheBoundAreWorse) {
  const Measurement right = defective(Defect::none);
  for (const Defect defect : {Defect::p_truncated, Defect::output_truncated}) {
    const Measurement wrong = defective(defect);
    const std::string name(kDefectNames[static_cast<std::size_t>(defect)]);
    const MeasurementComparison comparison = compared(right, wrong);
    // A truncated f32 does not show beside P in bf16.
    EXPECT_EQ(worse(comparison), defect == Defect::p_truncated ? 2U : 1U) << name;
    EXPECT_EQ(exit_code_of(comparison), 1) << name;
    const std::string text = comparison_text(comparison, wrong, 100);
    EXPECT_NE(text.find(" worse: the "), std::string::npos) << text;
    // The other way round it is a gain.
    const MeasurementComparison back = compared(wrong, right);
    EXPECT_EQ(exit_code_of(back), 0) << name << comparison_text(back, right, 100);
  }
}

TEST(MeasurementComparison, FewRowsAreNotSaidToHaveGrown) {
  constexpr const char* kFew[] = {"q=1x1x16x32 kv=1x96x32 causal in=bf16 out=bf16",
                                  "q=1x1x16x32 kv=1x96x32 causal in=bf16 fill=one_signed"};
  const Measurement right = defective(Defect::none, kFew);
  const Measurement wrong = defective(Defect::p_truncated, kFew);
  // All 16 rows of a cell grow by chance in 2^-16 of all cases, those of both in 2^-32.
  const MeasurementComparison both = compared(right, wrong);
  EXPECT_EQ(worse(both), 0U);
  EXPECT_TRUE(both.together.worse);
  EXPECT_EQ(exit_code_of(both), 1);
  const std::string text = comparison_text(both, wrong, 100);
  EXPECT_EQ(text.find(" worse: the "), text.find("all cells together") + 18) << text;
  for (const char* part :
       {"2 cells compared: 0 worse", "; all together worse\n",
        "2 cells have too few rows to be called worse by themselves: 16 rows all "
        "grow by chance in 1.5e-05 of all cases; 24 rows would be enough"}) {
    EXPECT_NE(text.find(part), std::string::npos) << text;
  }
  // Of one cell alone nothing can be said, and so nothing is.
  Measurement one_before = right, one_now = wrong;
  one_before.cells.resize(1);
  one_now.cells.resize(1);
  const MeasurementComparison one = compared(one_before, one_now);
  EXPECT_EQ(exit_code_of(one), 0);
  const std::string said = comparison_text(one, one_now, 100);
  EXPECT_EQ(said.find("1 cells compared: 0 worse"), 0U) << said;
  EXPECT_EQ(said.find("grew"), std::string::npos) << said;
  EXPECT_NE(said.find("too few rows"), std::string::npos) << said;
  EXPECT_EQ(said.find("nine times in ten"), std::string::npos) << said;
}

TEST(MeasurementComparison, SaysHowSmallAChangeItWouldHaveSeen) {
  const Measurement right = defective(Defect::none);
  const Measurement other = measured(modelled({}, 48));
  const MeasurementComparison comparison = compared(right, other);
  const double least = comparison.together.errors.least;
  EXPECT_GT(least, 0);
  EXPECT_LT(least, 1) << "not even a factor of e?";
  EXPECT_NE(comparison_text(comparison, other, 100)
                .find("nine times in ten would have been seen: errors larger by "),
            std::string::npos);
  // Errors that are larger by twice that are called worse.
  Measurement larger = other;
  for (Cell& cell : larger.cells) {
    for (double& square : cell.rows.square) square *= std::exp(4 * (least + kUnnoticed));
  }
  EXPECT_TRUE(compared(right, larger).together.worse);
}

TEST(MeasurementComparison, WhatNobodyWouldNoticeIsNoGrowth) {
  const Measurement right = defective(Defect::none);
  for (const double factor : {1 + kUnnoticed / 2, 1 + 4 * kUnnoticed}) {
    Measurement moved = right;  // every row a little to one side, as by other tensor cores
    for (Cell& cell : moved.cells) {
      for (double& square : cell.rows.square) square *= factor * factor;
    }
    EXPECT_EQ(worse(compared(right, moved)), factor < 1 + kUnnoticed ? 0U : 2U);
    EXPECT_FALSE(compared(right, moved).changes[0].same);
  }
}

TEST(MeasurementComparison, ABiasThatIsNoneDoesNotGrow) {
  const Measurement right = defective(Defect::none);
  // All rows move by the same, in the direction of the mean: of one that is chance, or of a bias.
  for (const double standing : {0.0, 1.0}) {
    Measurement before = right, now = right;
    for (Measurement* one : {&before, &now}) {
      for (Cell& cell : one->cells) {
        for (std::size_t i = 0; i < cell.rows.inward.size(); ++i) {
          const double size = std::sqrt(cell.rows.square[i]);
          const double scattered = i % 2 == 0 ? 1 : -0.9;
          cell.rows.inward[i] = size * (scattered / 2 + standing + (one == &now ? 0.05 : 0));
        }
      }
    }
    const MeasurementComparison comparison = compared(before, now);
    for (const CellChange& change : comparison.changes) {
      EXPECT_GT(change.rows.bias_now, change.rows.bias_before);
      EXPECT_EQ(change.rows.bias.grown, 48);
      EXPECT_EQ(change.rows.worse, standing > 0);
    }
  }
}

TEST(MeasurementComparison, TheSameMeansEveryFigure) {
  const Measurement right = defective(Defect::none);
  Measurement other = right;
  double& figure = other.cells[0].rows.margin[7];
  figure = std::nextafter(figure, 2);
  const MeasurementComparison comparison = compared(right, other);
  EXPECT_FALSE(comparison.changes[0].same);
  EXPECT_TRUE(comparison.changes[1].same);
  EXPECT_NE(comparison_text(comparison, right, 100).find("1 with the same figures to the last bit"),
            std::string::npos);
}

TEST(MeasurementComparison, AMarginThatJumpsIsWarnedOf) {
  const Measurement right = defective(Defect::none);
  Measurement jumped = right;
  Cell& cell = jumped.cells[1];
  ASSERT_GT(cell.o_bounds[0].largest, 0);
  ASSERT_LT(cell.o_bounds[0].largest, 0.5);
  cell.o_bounds[0].largest = 0.9;
  cell.o_bounds[2] = {.elements = 1, .median = 0, .largest = 1, .where = {}};  // says nothing
  const MeasurementComparison one = compared(right, jumped);
  EXPECT_EQ(one.changes[0].warning, "");
  EXPECT_NE(one.changes[1].warning, "");
  EXPECT_EQ(exit_code_of(one), 0) << "a warning is no verdict";
  EXPECT_NE(comparison_text(one, jumped, 100).find("cell 2 warning: the largest margin went from"),
            std::string::npos);
  // Many rows that are a little beyond: 2^-30 is less than the rate.
  jumped = right;
  const double largest = jumped.cells[0].o.margin;
  for (std::size_t i = 0; i < 30; ++i) jumped.cells[0].rows.margin[i] = largest * 1.01;
  jumped.cells[0].o.margin = largest * 1.01;
  const MeasurementComparison many = compared(right, jumped);
  EXPECT_NE(many.changes[0].warning, "");
  EXPECT_NE(many.changes[0].warning.find("30 rows use more of their bound than any row did"),
            std::string::npos)
      << many.changes[0].warning;
  EXPECT_EQ(compared(jumped, right).changes[0].warning, "") << "less is no jump";
}

TEST(MeasurementComparison, OnlyWhatBothHaveIsCompared) {
  const Measurement right = defective(Defect::none);
  Measurement other = right;
  other.cells[0].test_case.seed = 7;
  const MeasurementComparison some = compared(right, other);
  EXPECT_EQ(some.changes.size(), 1U);
  EXPECT_EQ(some.changes[0].cell, 1U);
  EXPECT_EQ(some.only_before, 1U);
  EXPECT_EQ(some.only_now, 1U);
  EXPECT_EQ(exit_code_of(some), 0);
  other.cells[1].operation = Operation::decode;
  EXPECT_EQ(exit_code_of(compared(right, other)), 2);
  EXPECT_EQ(exit_code_of(compared({}, right)), 2);
  other = right;
  other.cells[1].o.elements = 0;  // declined, or faulted
  EXPECT_EQ(compared(right, other).changes.size(), 1U);
  EXPECT_EQ(compared(right, other).only_before, 1U);
}

TEST(MeasurementComparison, ThePairsOfAFileMayBeOfAnyLength) {
  const Measurement right = defective(Defect::none);
  Measurement odd = right;
  odd.cells[0].rows.square.pop_back();
  odd.cells[0].rows.inward.pop_back();
  odd.cells[0].rows.margin.pop_back();
  odd.cells[1].rows.square.assign(odd.cells[1].rows.square.size(), NAN);
  const MeasurementComparison comparison = compared(odd, right);
  ASSERT_EQ(comparison.changes.size(), 1U);
  EXPECT_FALSE(comparison.changes[0].rows.worse);
}

}  // namespace
}  // namespace attest
