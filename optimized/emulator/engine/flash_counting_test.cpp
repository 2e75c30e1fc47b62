// Our f32 flash kernel, counted: its products are 4 S^2 d, and what comes on top is what its loops
// say. Also what is known of its memory traffic by hand.
#include <gtest/gtest.h>

#include <cmath>

#include "optimized/emulator/engine/testing/flash_setup.hpp"
#include "optimized/emulator/engine/testing/test_program.hpp"

namespace attest::emulator {
namespace {

constexpr int kDepth = kFlashDepth, kTile = 32;  // of rows and of keys

/// One head, S queries and keys, no mask.
Totals count(int length) {
  const std::string text = text_of(ATTEST_FLASH_PTX);
  TestProgram program(text);
  const std::size_t numbers = std::size_t(length) * kDepth;
  Buffer<float> q(numbers, 0.5F), k(numbers, 0.25F), v(numbers, 1.0F), o(numbers),
      lse(numbers / kDepth);
  const kernels::AttentionArguments a =
      flash_arguments(q.data(), k.data(), v.data(), o.data(), lse.data(), length);
  const unsigned tiles = unsigned(length / kTile);
  const Totals before = Device::instance().totals();
  EXPECT_EQ(
      program.trouble(flash_kernel(text), {{tiles}, {kFlashThreads}, kFlashSharedBytes}, a, tiles),
      "");
  Totals after = Device::instance().totals();
  for (const TotalColumn& column : total_columns()) after.*column.value -= before.*column.value;
  EXPECT_EQ(o[0], 1.0F);
  return after;
}

TEST(FlashCounting, ProductsAreFourSquaresOfTheLengthTimesTheDepth) {
  choose("avx512");
  DeviceOptions options;
  options.counters = true;
  Device::instance().configure(options);
  const auto flops = [](const Totals& t) { return std::int64_t(t.f32_flops); };
  const Totals two = count(2 * kTile), four = count(4 * kTile), six = count(6 * kTile);
  // Work is a S^2 + b S, exactly: so from two lengths follows a third.
  const std::int64_t s = 2 * kTile;
  EXPECT_EQ(flops(six) - 3 * flops(two), 3 * (flops(four) - 2 * flops(two)));
  // Per score: 4 d for the products; kWeight for its weight and the row sum. Per row and tile of 32
  // keys: one multiplication for each column, and in eight lanes a weight and one for the row sum.
  const double per_score = double(flops(four) - 2 * flops(two)) / double(2 * s * s);
  constexpr double kWeight = 3;  // subtraction, scaling, and the sum
  EXPECT_EQ(per_score, 4 * kDepth + kWeight + (kDepth + 8 * kWeight) / kTile);

  const std::uint64_t length = 4 * kTile, row = kDepth * sizeof(float);
  EXPECT_EQ(four.global_written_bytes, length * (row + sizeof(float)));
  EXPECT_EQ(four.barriers, 2 * (length / kTile) * 2 * (length / kTile));  // two warps, two a tile
  EXPECT_EQ(four.local_bytes, 0u);
  EXPECT_EQ(four.tensor_flops + four.f64_flops + four.f16_flops, 0u);
  // Each tile of rows reads its rows of Q, and all of K and V, once.
  EXPECT_EQ(four.global_read_bytes, length * row * (1 + 2 * length / kTile));
}

}  // namespace
}  // namespace attest::emulator
