// What is measured of subjects whose errors are known, and that a measurement survives its file.
#include "reports/measurement.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "properties/fills.hpp"
#include "properties/oracle_subject.hpp"
#include "properties/testing/tiled_subject.hpp"
#include "reference/formats.hpp"
#include "reference/oracle/exact.hpp"
#include "reference/text.hpp"

namespace attest {
namespace {

constexpr const char* kPrefill = "q=1x2x24x32 kv=1x40x32 causal in=bf16 out=bf16";

Cell measured(const Subject& subject, const std::string& line = kPrefill) {
  return measure_cell(subject, Operation::prefill, parse_case(line));
}

/// The oracle, but `change` makes something else of each number of O and its truth.
Subject changed(double (*change)(Format format, double truth)) {
  Subject subject = oracle_subject();
  intercept<Attend>(subject, [change](const Attend& asked, Poison poison, const Handler& right) {
    Reply reply = right(asked, poison);
    const Problem& p = asked.problem;
    const Truth truth = exact_attention(p, asked.values);
    for (Index i = 0; i < reply.o.count(); ++i) {
      reply.o.set(i, change(p.output, truth.o[static_cast<std::size_t>(i)]));
    }
    return reply;
  });
  return subject;
}

double truncated(Format format, double truth) {
  const double nearest = rounded(format, truth);
  if (std::fabs(nearest) <= std::fabs(truth)) return nearest;
  return nearest - std::copysign(ulp(format, truth), nearest);
}

Measurement of(std::vector<Cell> cells) {
  return {.version = "0.1.0",
          .subject = "it's mine",
          .numerics = "emulated: sm_80",
          .device = "auto",
          .emulation = {.numerics = "sm_90", .checks = "none", .schedule = 7},
          .seed = 18446744073709551615U,
          .seconds = 0.125,
          .cells = std::move(cells)};
}

std::string refusal(const std::string& text) {
  try {
    measurement_of_json(text, "m.json");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Measurement, TheOracleErrsByItsRoundingAlone) {
  const Cell cell = measured(oracle_subject());
  EXPECT_EQ(cell.verdict.outcome, Outcome::holds);
  EXPECT_EQ(cell.o.elements, 2 * 24 * 32);
  EXPECT_EQ(cell.o.correct, cell.o.elements);
  EXPECT_EQ(cell.lse.elements, 2 * 24);
  EXPECT_EQ(cell.lse.correct, cell.lse.elements);
  EXPECT_LE(cell.o.ulp.largest, 0.5);
  EXPECT_NEAR(cell.o.ulp.median, 0.25, 0.03);  // uniform from 0 to 1/2, over 1536 elements
  EXPECT_LT(std::fabs(cell.o.inward.mean), 5 * cell.o.inward.error);
  // error_of() takes the rounding away, so that nothing of the bound is used.
  const BoundUse& use = cell.o_bounds[static_cast<std::size_t>(Strength::order_free)];
  EXPECT_EQ(use.elements, 2U * 24 * 32);
  EXPECT_EQ(use.largest, 0);
  EXPECT_EQ(cell.o.margin, 0);
  EXPECT_EQ(cell.tiers[0], 2 * 24) << "double is enough for every row";
}

TEST(Measurement, TruncationIsABiasOfHalfAnUlp) {
  const Cell cell = measured(changed(truncated));
  EXPECT_LE(cell.o.ulp.largest, 1);
  EXPECT_NEAR(cell.o.ulp.median, 0.5, 0.05);
  // An element's ulp is between a half and twice the row's in most of a row, so that the mean in
  // units of the row is near, but not at, one half.
  EXPECT_LT(cell.o.inward.mean, -0.25);
  EXPECT_GT(cell.o.inward.mean, -0.6);
  EXPECT_GT(std::fabs(cell.o.inward.mean), 20 * cell.o.inward.error);
  EXPECT_LT(std::fabs(cell.o.offset.mean), 5 * cell.o.offset.error) << "signs of O cancel it";
  EXPECT_NEAR(static_cast<double>(cell.o.correct) / static_cast<double>(cell.o.elements), 0.5,
              0.06);
}

TEST(Measurement, StagesOfTheDeclaredPathExplainTheError) {
  // f32 throughout and an f32 output: no cast of P, and what the output's rounding adds is little.
  const Cell f32 = measured(tiled_subject(64), "q=1x1x24x32 kv=1x400x32");
  ASSERT_TRUE(f32.stages);
  EXPECT_EQ(f32.stages->of(Stage::p_cast).remains.rms, 0);
  double shares = 0;
  for (const StageError& stage : f32.stages->stages) shares += stage.share;
  EXPECT_NEAR(shares, 1, 1e-9);
  const double measured_rms = 0x1p-23 * std::sqrt(f32.o.square.mean);
  EXPECT_GT(f32.stages->total.rms, measured_rms / 4);
  EXPECT_LT(f32.stages->total.rms, measured_rms * 4);
  // In bf16 a kernel that keeps P in f32 errs by the cast of its output alone.
  const Cell bf16 = measured(tiled_subject(64));
  ASSERT_TRUE(bf16.stages);
  EXPECT_GT(bf16.stages->of(Stage::output_cast).share, 0.99);
}

TEST(Measurement, LargeCellsAreAttributedInPart) {
  const Case large =
      parse_case("q=3x2x128x64 kv=2x1024x64 causal bias alibi in=f16 cache=i8 scales=token");
  const auto some = attribution_of(large.problem, make_values(large), {}, 0);
  ASSERT_TRUE(some);
  EXPECT_GT(some->elements, 0);
  EXPECT_LE(some->elements * 1024 * 2, 1 << 22);
  // The part is what the whole says of these rows: the last of the first sequence.
  const Case small = parse_case("q=1x2x8x4 kv=2x40x4 causal");
  const auto whole = attribution_of(small.problem, make_values(small), {}, 0);
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->elements, 2 * 8 * 4);
}

TEST(Measurement, ATruncatedOutputRaisesAnAlarmAndARightOneDoesNot) {
  const std::string line = "q=1x2x128x32 kv=2x128x32 in=bf16 out=bf16";
  const Cell right = measured(tiled_subject(16), line);
  ASSERT_TRUE(right.o.z) << right.o.uncalibrated;
  EXPECT_TRUE(right.o.z->alarms.empty());
  Subject truncating = changed(truncated);
  truncating.description.precision.p_format = Format::bf16;  // so that its bound lets it pass
  const Cell wrong = measured(truncating, line);
  EXPECT_EQ(wrong.verdict.outcome, Outcome::holds);
  ASSERT_TRUE(wrong.o.z) << wrong.o.uncalibrated;
  EXPECT_FALSE(wrong.o.z->alarms.empty());
  EXPECT_LT(wrong.o.z->inward.total, -6);
  const Measurement both = of({right, wrong});
  EXPECT_NE(measurement_table(both, 100).find("cell 2: alarm: z inward is "), std::string::npos);
  const MeasurementEnd end = end_of(both);
  EXPECT_EQ(end.exit_code, 1);
  EXPECT_NE(end.reason.find("errors of 1 of 2 cells lie within their bounds but"),
            std::string::npos);
  EXPECT_EQ(end.replay, "./attest measure --case 'prefill " + print(wrong.test_case) +
                            "' --subject 'it'\\''s mine' --numerics sm_90 --schedule 7");
  EXPECT_EQ(end_of(of({right})).exit_code, 0);
}

TEST(Measurement, RowsAddUpToTheSummary) {
  for (const Subject& subject : {tiled_subject(16), changed(truncated)}) {
    const Cell cell = measured(subject);
    ASSERT_EQ(cell.rows.square.size(), 2U * 24);
    EXPECT_NEAR(row_mean(cell.rows.square).mean, cell.o.square.mean, 1e-12);
    EXPECT_NEAR(row_mean(cell.rows.square).error, cell.o.square.error, 1e-12);
    EXPECT_NEAR(row_mean(cell.rows.inward).mean, cell.o.inward.mean, 1e-12);
    double largest = 0;
    for (const double margin : cell.rows.margin) largest = std::max(largest, margin);
    EXPECT_EQ(largest, cell.o.margin);
    EXPECT_GE(cell.verdict.margin, largest);
    const double unit = 2 * unit_roundoff(Format::bf16);
    EXPECT_GE(cell.o_to_rms.largest, std::sqrt(cell.o.square.mean) * unit);
  }
}

TEST(Measurement, ATiledKernelErrsMoreThanTheOracleAndLessThanItMay) {
  const std::string f32 = "q=1x1x24x32 kv=1x400x32";
  const Cell tiled = measured(tiled_subject(64), f32), oracle = measured(oracle_subject(), f32);
  EXPECT_GT(tiled.o.square.mean, 2 * oracle.o.square.mean);
  EXPECT_GT(tiled.o.margin, 0);
  EXPECT_LT(tiled.o.margin, 1);
  EXPECT_LT(tiled.o.correct, tiled.o.elements);
  EXPECT_EQ(tiled.o_bounds[0].largest, tiled.o.margin);
  EXPECT_LE(tiled.o_bounds[0].median, tiled.o_bounds[0].largest);
}

TEST(Measurement, WhatIsRefusedIsWrongAndCanBeReplayed) {
  const Cell wrong = measured(changed([](Format, double truth) { return 2 * truth; }));
  EXPECT_EQ(wrong.verdict.outcome, Outcome::violated);
  const Measurement measurement = of({measured(oracle_subject()), wrong});
  const MeasurementEnd end = end_of(measurement);
  EXPECT_EQ(end.exit_code, 1);
  EXPECT_NE(end.reason.find("wrong in 1 of 2 cells"), std::string::npos) << end.reason;
  EXPECT_NE(end.replay.find("replay 'oracle_agreement " + print(wrong.test_case) + "'"),
            std::string::npos)
      << end.replay;
  EXPECT_NE(end.replay.find("--schedule 7"), std::string::npos) << end.replay;
  EXPECT_NE(measurement_table(measurement, 100).find("cell 2: violated: o is"), std::string::npos);
}

TEST(Measurement, WhatIsDeclinedMeasuresNothing) {
  Subject subject = oracle_subject();
  subject.declines = [](Operation, const Problem&) { return "too causal"; };
  const Measurement measurement = of({measured(subject)});
  EXPECT_EQ(end_of(measurement).exit_code, 2);
  EXPECT_NE(end_of(measurement).reason.find("too causal"), std::string::npos);
  EXPECT_EQ(end_of(of({measured(subject), measured(oracle_subject())})).exit_code, 0);
  EXPECT_EQ(end_of(of({})).exit_code, 2);
  Subject silent = oracle_subject();
  silent.call = [](const Request&, Poison) {
    Reply reply;
    reply.fault = Fault{"hung", "for a minute"};
    return reply;
  };
  EXPECT_EQ(end_of(of({measured(silent)})).exit_code, 1);
}

TEST(Measurement, EmptyRowsAndSpecialNumbersEnterNoFigure) {
  const Cell cell = measured(oracle_subject(), "q=1x1x8x4 kv=1x4x4 causal");  // four see no key
  EXPECT_EQ(cell.verdict.outcome, Outcome::holds);
  EXPECT_EQ(cell.o.elements, 4 * 4);
  EXPECT_EQ(cell.o.unjudged, 0);
  EXPECT_EQ(cell.lse.elements, 4);
}

TEST(Measurement, IsReadBackWhole) {
  Subject declining = oracle_subject();
  declining.declines = [](Operation, const Problem&) { return "\xff too\ncausal"; };
  Cell odd = measured(tiled_subject(8));
  odd.o.ulp.largest = INFINITY;
  odd.rows.margin[3] = INFINITY;
  odd.o.z.emplace();
  odd.o.z->chi_square = 0.1;
  odd.o.z->inward.total = -7;
  odd.o.z->least_bias = {1, 2, INFINITY, 4};
  odd.o.z->alarms = {{"inward", -7, 6}};
  odd.tiers = {1, 2, 3, 4, 5};
  ASSERT_TRUE(odd.stages);
  odd.stages->stages[2] = {{1, 2, 3}, {4, 5, 6}, 0.7};
  odd.operation = Operation::decode;
  const Measurement whole = of({odd, measured(oracle_subject()), measured(declining)});
  const std::string text = measurement_json_of(whole);
  const Measurement back = measurement_of_json(text, "m.json");
  EXPECT_EQ(measurement_json_of(back), text);
  ASSERT_EQ(back.cells.size(), 3U);
  EXPECT_EQ(back.seed, whole.seed);
  EXPECT_EQ(back.emulation, whole.emulation);
  EXPECT_EQ(back.cells[0].operation, Operation::decode);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(back.cells[i].test_case, whole.cells[i].test_case);
    EXPECT_EQ(back.cells[i].o, whole.cells[i].o);
    EXPECT_EQ(back.cells[i].lse, whole.cells[i].lse);
    EXPECT_EQ(back.cells[i].o_bounds, whole.cells[i].o_bounds);
    EXPECT_EQ(back.cells[i].rows, whole.cells[i].rows);
    EXPECT_EQ(back.cells[i].tiers, whole.cells[i].tiers);
  }
}

TEST(Measurement, AFileThatIsWrongIsRefusedByName) {
  const std::string text = measurement_json_of(of({measured(oracle_subject())}));
  const auto replaced = [&text](const std::string& from, const std::string& to) {
    std::string other = text;
    const std::size_t at = other.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return other.replace(at, from.size(), to);
  };
  const auto refused = [&](const std::string& from, const std::string& to, const char* why) {
    const std::string what = refusal(replaced(from, to));
    EXPECT_NE(what.find(why), std::string::npos) << what;
  };
  refused("\"schema\": 1", "\"schema\": 2", "m.json: schema is 2");
  refused("\"operation\": \"prefill\"", "\"operation\": \"append\"", "cells[0]: operation");
  refused("\"case\": \"q", "\"case\": \"p", "cells[0]: case: case line, column 1");
  refused("\"correct\": 1", "\"correct\": -1", "correct");
  refused("\"square\": [", "\"square\": [0.5, ", "should be as long as");
  refused("\"running\": {", "\"walking\": {", "running is missing");
  EXPECT_NE(refusal(text.substr(0, text.size() / 2)).find("not valid JSON"), std::string::npos);
}

TEST(Measurement, TablesFitTheirColumns) {
  const Cell long_words = measured(
      tiled_subject(8), "q=1x1x9x128 kv=1x10x64 in=bf16 out=f32 cache=e4m3 fill=logits_very_low");
  const Cell other = measured(tiled_subject(8), "q=1x1x9x8 kv=1x2048x8 in=f16 out=bf16");
  Cell third = measured(oracle_subject());
  third.operation = Operation::decode;
  std::vector<Cell> cells{long_words, other, third};
  for (int i = 0; i < 60; ++i) cells.push_back(i % 3 == 1 ? other : long_words);
  const std::string table = measurement_table(of(cells), 100);
  EXPECT_NE(table.find(" 4, 6-7, 9-10, "), std::string::npos) << table;
  for (std::size_t start = 0; start < table.size();) {
    const std::size_t stop = table.find('\n', start);
    EXPECT_LE(stop - start, 100U) << table.substr(start, stop - start);
    start = stop + 1;
  }
  const std::string same = measurement_table(of({third, third}), 100);
  EXPECT_EQ(same.find("all cells: call decode, length 40, width 32, formats bf16, fill normal"), 0U)
      << same;
}

}  // namespace
}  // namespace attest
