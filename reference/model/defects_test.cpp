// Every defect by hand, each in a model in which little or nothing else rounds: a defect that did
// something else, or nothing, would make every table of detection wrong.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "reference/formats.hpp"
#include "reference/model/model.hpp"
#include "reference/random_values.hpp"

namespace attest {
namespace {

constexpr double kRoom = 0x1p-45;  // for the roundings of double in a sum of a few terms

double truncated_bf16(double number) {
  const double step = ulp(Format::bf16, number);
  return std::trunc(number / step) * step;
}

/// One query of one column: logits are k, V is v.
struct Small {
  Problem problem{.softmax_scale = 1};
  Values values;
  PrecisionPath path{.p_format = Format::bf16, .kv_block = 64};

  Small(std::vector<double> k, std::vector<double> v) {
    problem.seqlen_kv = static_cast<Index>(k.size());
    values = zero_values(problem);
    values.q.set(0, 1);
    for (std::size_t j = 0; j < k.size(); ++j) {
      values.k.set(static_cast<Index>(j), k[j]);
      values.v.set(static_cast<Index>(j), v[j]);
    }
  }
  double o(Defect defect, Stages exact = all_stages()) const {
    return model_attention(problem, values, path, {.exact = exact, .defect = defect}).o[0];
  }
  double rounding_only(Stage stage, Defect defect) const {
    return o(defect, all_stages() & ~only(stage));
  }
};

struct Numbers {
  double p1 = std::exp(-1.0), p2 = std::exp(-2.0), l = 1 + p1 + p2;
};

TEST(Defects, Casts) {
  Small small({0, -1, -2}, {1, 3, 10});
  const Numbers is;
  EXPECT_NEAR(small.rounding_only(Stage::p_cast, Defect::p_truncated),
              (1 + 3 * truncated_bf16(is.p1) + 10 * truncated_bf16(is.p2)) / is.l, kRoom);
  small.problem.output = Format::bf16;
  small.values.v.set(2, 10.25);
  const double o = (1 + 3 * is.p1 + 10.25 * is.p2) / is.l;
  ASSERT_NE(truncated_bf16(o), rounded(Format::bf16, o));
  EXPECT_EQ(small.rounding_only(Stage::output_cast, Defect::output_truncated), truncated_bf16(o));
  EXPECT_EQ(small.rounding_only(Stage::output_cast, Defect::none), rounded(Format::bf16, o));
}

TEST(Defects, Scores) {
  Small small({0, -1.001, -2}, {1, 3, 10});
  Small scaled = small;
  scaled.problem.softmax_scale = 1 + 0x1p-13F;
  EXPECT_EQ(small.o(Defect::scale_off), scaled.o(Defect::none));
  EXPECT_EQ(small.o(Defect::scale_off, {}), scaled.o(Defect::none, {}));
  scaled.problem.softmax_scale = 1;
  scaled.values.k.set(1, rounded(Format::bf16, -1.001));
  EXPECT_EQ(small.o(Defect::scores_in_bf16), scaled.o(Defect::none));
  EXPECT_NE(small.o(Defect::scores_in_bf16), small.o(Defect::none));
}

TEST(Defects, Exponentials) {
  const Small small({0, -1, -2}, {1, 3, 10});
  const Numbers is;
  const double more = 1 + 0x1p-12;
  EXPECT_NEAR(small.o(Defect::exp_biased),
              (1 + more * (3 * is.p1 + 10 * is.p2)) / (1 + more * (is.p1 + is.p2)), kRoom);
}

TEST(Defects, RowSums) {
  const Small small({0, -1, -2}, {1, 3, 10});
  const Numbers is;
  const double above = 1 + 3 * is.p1 + 10 * is.p2;
  EXPECT_NEAR(small.o(Defect::sum_misses_key), above / (1 + is.p2), kRoom);  // the middle one
  const auto f16 = [](double x) { return rounded(Format::f16, x); };
  const double l = f16(f16(1 + is.p1) + is.p2);
  ASSERT_GT(std::fabs(l / is.l - 1), 0x1p-14);
  // Alone, the stage still takes a reciprocal and a product in f32: two roundings.
  EXPECT_NEAR(small.rounding_only(Stage::row_sum, Defect::sum_in_f16), above / l, 0x1p-22 * above);
  const double q1 = rounded(Format::bf16, is.p1), q2 = rounded(Format::bf16, is.p2);
  EXPECT_NEAR(small.rounding_only(Stage::p_cast, Defect::sum_from_cast),
              (1 + 3 * q1 + 10 * q2) / (1 + q1 + q2), kRoom);
}

TEST(Defects, OneRescaleIsMissing) {
  Small small({0, 1, 3}, {1, 3, 10});
  small.path.kv_block = 1;
  const double l = std::exp(-3.0) + std::exp(-2.0) + 1;
  // At the second key, O stays 1; at the third it is rescaled as it should be.
  EXPECT_NEAR(small.o(Defect::rescale_missing), ((1 + 3) * std::exp(-2.0) + 10) / l, kRoom);
  small.path.kv_block = 64;
  EXPECT_EQ(small.o(Defect::rescale_missing), small.o(Defect::none));
}

TEST(Defects, Keys) {
  Small small({0, -1, -2, 1}, {1, 3, 10, 5});
  const Small shorter({0, -1, -2}, {1, 3, 10}), swapped({0, -1, -2, 1}, {1, 10, 3, 5});
  EXPECT_EQ(small.o(Defect::key_dropped, {}), shorter.o(Defect::none, {}));
  EXPECT_EQ(small.o(Defect::rows_swapped, {}), swapped.o(Defect::none, {}));
  EXPECT_EQ(small.o(Defect::key_leaked, {}), small.o(Defect::none, {}));  // there is none to leak
  const double all = small.o(Defect::none, {});
  small.problem.seqlens_kv = {3};
  EXPECT_EQ(small.o(Defect::none, {}), shorter.o(Defect::none, {}));
  EXPECT_EQ(small.o(Defect::key_leaked, {}), all);
}

}  // namespace
}  // namespace attest
