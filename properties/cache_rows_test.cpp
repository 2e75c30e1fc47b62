// Rows of caches, by hand: scales, turns, slots of rings, and what an append makes of them.
#include "properties/cache_rows.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "properties/fills.hpp"
#include "reference/formats.hpp"
#include "reference/text.hpp"

namespace attest {
namespace {

TEST(CacheRows, ScalesBringTheLargestToTheLargest) {
  EXPECT_EQ(scale_for(Format::e4m3, 448), 1);
  EXPECT_EQ(scale_for(Format::i8, 127 * 0.25), 0.25);
  EXPECT_EQ(scale_for(Format::i8, 0), 1);
  EXPECT_EQ(scale_for(Format::e5m2, 1), rounded(Format::f32, 1 / 57344.0));
  EXPECT_EQ(scale_for(Format::e4m3, 1e-45), 0x1p-126);
}

// Every stored number is within half a step of what the fill drew, in units of its scale.
TEST(CacheRows, ScaledFillsAreTheFillRounded) {
  for (const Fill& fill : fills()) {
    const std::string line = "q=1x4x1x6 kv=2x9x5 fill=" + std::string(fill.name);
    const Values plain = make_values(parse_case(line));
    for (const std::string cache : {"e4m3", "e5m2", "i8"}) {
      for (const std::string scales : {"tensor", "head", "token"}) {
        const Case c = parse_case(line + " cache=" + cache + " scales=" + scales);
        const Values values = make_values(c);
        EXPECT_EQ(values.q, plain.q);
        ASSERT_EQ(values.k_scales->extent, scales_extent(c.problem, 9));
        double largest = 0;
        for (Index h = 0; h < 2; ++h) {
          for (Index row = 0; row < 9; ++row) {
            const double scale = scale_at(values.k_scales, 0, h, row);
            for (Index column = 0; column < 6; ++column) {
              const double x = plain.k.at(0, h, row, column);
              const double stored = values.k.at(0, h, row, column);
              largest = std::max(largest, std::fabs(stored));
              EXPECT_LE(std::fabs(stored - x / scale),
                        ulp(values.k.format, std::fmax(std::fabs(stored), std::fabs(x / scale))) *
                            0.5000001)
                  << fill.name << " " << cache << " " << scales;
            }
          }
        }
        EXPECT_EQ(largest, facts(values.k.format).max_finite) << fill.name << " " << cache;
      }
    }
  }
}

TEST(CacheRows, TurnsPairsOfColumns) {
  Tensor quarter(Format::f32, {1, 1, 2, 4});  // position 0: as it is; position 1: by 90 degrees
  quarter.set(0, 0, 0, 0, 1);
  quarter.set(0, 0, 0, 1, 1);
  quarter.set(0, 0, 1, 2, 1);
  quarter.set(0, 0, 1, 3, 1);
  const auto values = [&](Rope rope, Index position) {
    std::vector<double> result;
    for (const Turned& turned : turned_row(rope, {1, 2, 3, 4}, quarter, position)) {
      result.push_back(turned.value);
    }
    return result;
  };
  EXPECT_EQ(values(Rope::none, 1), (std::vector<double>{1, 2, 3, 4}));
  EXPECT_EQ(values(Rope::halves, 0), (std::vector<double>{1, 2, 3, 4}));
  EXPECT_EQ(values(Rope::halves, 1), (std::vector<double>{-3, -4, 1, 2}));
  EXPECT_EQ(values(Rope::pairs, 1), (std::vector<double>{-2, 1, -4, 3}));
}

TEST(CacheRows, RotationsAreOnTheUnitCircle) {
  const Tensor table = rotation_table(50, 6);
  for (Index position = 0; position < 50; ++position) {
    for (Index c = 0; c < 3; ++c) {
      const double x = table.at(0, 0, position, c), y = table.at(0, 0, position, 3 + c);
      // Each is rounded once to f32, so off by u of itself: the sum by 2 u (x x + y y).
      EXPECT_NEAR(x * x + y * y, 1, 2 * 0x1p-24 * (1 + 0x1p-20));
    }
  }
}

TEST(CacheRows, ARingKeepsTheLastTokenOfASlot) {
  Problem line, ring;
  ring.ring = 3;
  EXPECT_EQ(row_in_slot(line, 4, 4, 2), 0);
  EXPECT_EQ(row_in_slot(line, 6, 4, 2), std::nullopt);
  EXPECT_EQ(row_in_slot(line, 3, 4, 2), std::nullopt);
  // Tokens 4 and 5 of a ring of three take slots 1 and 2.
  EXPECT_EQ(row_in_slot(ring, 0, 4, 2), std::nullopt);
  EXPECT_EQ(row_in_slot(ring, 1, 4, 2), 0);
  EXPECT_EQ(row_in_slot(ring, 2, 4, 2), 1);
  // Tokens 4 to 8: the last three stay.
  EXPECT_EQ(row_in_slot(ring, 0, 4, 5), 2);
  EXPECT_EQ(row_in_slot(ring, 1, 4, 5), 3);
  EXPECT_EQ(row_in_slot(ring, 2, 4, 5), 4);
  EXPECT_EQ(row_in_slot(ring, 0, 4, 0), std::nullopt);
}

TEST(CacheRows, AnAppendTurnsScalesAndSaturates) {
  Problem p;
  p.head_dim = p.head_dim_v = 2;
  p.cache = Format::i8;
  p.scales = Scales::token;
  p.rope = Rope::pairs;
  CacheUpdate update;
  update.k = update.v = Tensor(Format::i8, {1, 1, 2, 2});
  update.k_scales = update.v_scales = Tensor(Format::f32, {1, 1, 2, 1});
  update.new_k = update.new_v = Tensor(Format::f32, {1, 1, 2, 2});
  for (Tensor* rows : {&update.new_k, &update.new_v}) {
    rows->set(0, 0.5);
    rows->set(1, -1);
  }
  update.rope_cos_sin = Tensor(Format::f32, {1, 1, 3, 2});
  update.rope_cos_sin->set(0, 0, 1, 1, 1);  // position 1: by 90 degrees
  update.cache_seqlens = {1};
  update.new_seqlens = {2};  // the second does not fit
  const Reply reply = appended<double>(p, update);
  EXPECT_EQ(reply.k.at(0, 0, 1, 0), 127);  // x' = -y = 1
  EXPECT_EQ(reply.k.at(0, 0, 1, 1), 64);   // y' = x = 0.5: 63.5, to even
  EXPECT_EQ(reply.v.at(0, 0, 1, 0), 64);
  EXPECT_EQ(reply.v.at(0, 0, 1, 1), -127);
  EXPECT_EQ(reply.k_scales.at(1), rounded(Format::f32, 1 / 127.0));
  EXPECT_EQ(reply.k.at(0), 0);
  EXPECT_EQ(reply.k_scales.at(0), 0);
  p.scales = Scales::tensor;
  update.v_scales = Tensor(Format::f32, {1, 1, 1, 1});
  update.k_scales = update.v_scales;
  update.k_scales->set(0, 1);
  update.v_scales->set(0, 1.0 / 256);
  EXPECT_EQ(appended<double>(p, update).v.at(0, 0, 1, 1), -127);  // of -256
}

}  // namespace
}  // namespace attest
