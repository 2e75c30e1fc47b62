// A measurement against an earlier one: harmless changes pass, defects that no bound refuses do
// not.
#include "reports/measurement_comparison.hpp"

#include <gtest/gtest.h>

#include <cmath>

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
  path.key_block = block;  // and of the order of work nothing, so that the bound is a wide one
  subject.prefill = [path, model](const Problem& p, const Values& values, Poison) {
    const Modelled made = model_attention(p, values, path, model);
    Reply reply;
    reply.o = Tensor(p.output, {p.batch, p.query_heads, p.queries, p.v_depth});
    reply.lse = Tensor(Format::f32, {p.batch, p.query_heads, p.queries, 1});
    for (Index i = 0; i < reply.o.count(); ++i) reply.o.set(i, made.o[static_cast<std::size_t>(i)]);
    for (Index i = 0; i < reply.lse.count(); ++i)
      reply.lse.set(i, made.lse[static_cast<std::size_t>(i)]);
    return reply;
  };
  return subject;
}

Measurement measured(const Subject& subject) {
  Measurement measurement;
  for (const char* line : kCases) {
    measurement.cells.push_back(measure_cell(subject, Operation::prefill, parse_case(line)));
    EXPECT_EQ(measurement.cells.back().verdict.outcome, Outcome::holds)
        << measurement.cells.back().verdict.why;
  }
  return measurement;
}

Measurement defective(Defect defect) {
  return measured(modelled({.exact = {}, .defect = defect, .freedom = {}}));
}

std::uint64_t worse(const MeasurementComparison& comparison) {
  std::uint64_t count = 0;
  for (const CellChange& change : comparison.changes) count += change.worse ? 1 : 0;
  return count;
}

TEST(MeasurementComparison, NothingIsWorseThanItself) {
  const Measurement right = defective(Defect::none);
  const MeasurementComparison comparison = compared(right, right);
  ASSERT_EQ(comparison.changes.size(), 2U);
  for (const CellChange& change : comparison.changes) {
    EXPECT_EQ(change.changed, 0U);
    EXPECT_FALSE(change.worse || change.better || change.warned);
    EXPECT_EQ(change.why, "");
  }
  EXPECT_EQ(exit_code_of(comparison), 0);
  EXPECT_NE(comparison_text(comparison, right, 100).find("2 to the last digit the same"),
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
    std::uint64_t changed;  // rows, at least; or there is nothing to see
  };
  const Harmless all[] = {{modelled({.exact = {}, .freedom = two_steps}), 10},
                          {modelled({.exact = {}, .freedom = noisy}), 10},
                          {modelled({}, 48), 60}};
  for (const auto& [subject, least] : all) {
    const Measurement other = measured(subject);
    const MeasurementComparison comparison = compared(right, other);
    std::uint64_t changed = 0;
    for (const CellChange& change : comparison.changes) changed += change.changed;
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

TEST(MeasurementComparison, AMarginThatJumpsIsWarnedOf) {
  const Measurement right = defective(Defect::none);
  Measurement jumped = right;
  Cell& cell = jumped.cells[1];
  ASSERT_GT(cell.o_bounds[0].largest, 0);
  ASSERT_LT(cell.o_bounds[0].largest, 0.5);
  cell.o_bounds[0].largest = 0.9;
  cell.o_bounds[2] = {.elements = 1, .median = 0, .largest = 1, .where = {}};  // says nothing
  const MeasurementComparison one = compared(right, jumped);
  EXPECT_FALSE(one.changes[0].warned);
  EXPECT_TRUE(one.changes[1].warned);
  EXPECT_EQ(exit_code_of(one), 0) << "a warning is no verdict";
  EXPECT_NE(comparison_text(one, jumped, 100).find("cell 2 warning: the largest margin went from"),
            std::string::npos);
  // Many rows that are a little beyond: 2^-30 is less than the rate.
  jumped = right;
  const double largest = jumped.cells[0].o.margin;
  for (std::size_t i = 0; i < 30; ++i) jumped.cells[0].rows.margin[i] = largest * 1.01;
  jumped.cells[0].o.margin = largest * 1.01;
  const MeasurementComparison many = compared(right, jumped);
  EXPECT_TRUE(many.changes[0].warned);
  EXPECT_NE(many.changes[0].why.find("30 rows use more of their bound than any row did"),
            std::string::npos)
      << many.changes[0].why;
  EXPECT_FALSE(compared(jumped, right).changes[0].warned) << "less is no jump";
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
  EXPECT_FALSE(comparison.changes[0].worse);
}

}  // namespace
}  // namespace attest
