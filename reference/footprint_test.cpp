// Cache sizes worked out by hand, and every way to ask for an impossible one.
#include "reference/footprint.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "reference/text.hpp"

namespace attest {
namespace {

constexpr Index kHuge = std::numeric_limits<Index>::max();

TEST(Footprint, IsTheProductOfItsFactors) {
  const CacheShape shape{.layers = 32,
                         .num_heads_kv = 8,
                         .key_width = 128,
                         .value_width = 128,
                         .tokens = 8192,
                         .batch = 1,
                         .format = Format::bf16};
  const Footprint footprint = kv_cache_footprint(shape);
  EXPECT_EQ(footprint.bytes, 1073741824U);  // 2^(1 + 5 + 3 + 7 + 13 + 1) = 2^30
  EXPECT_EQ(footprint.formula,
            "2 x 32 layers x 8 KV heads x 128 width x 8192 tokens x 1 batch x 2 bytes (bf16) = "
            "1073741824 bytes");
}

TEST(Footprint, WidthsMayDiffer) {
  const Footprint footprint = kv_cache_footprint({.layers = 3,
                                                  .num_heads_kv = 5,
                                                  .key_width = 192,
                                                  .value_width = 128,
                                                  .tokens = 7,
                                                  .batch = 2,
                                                  .format = Format::f32});
  EXPECT_EQ(footprint.bytes, 3U * 5 * 320 * 7 * 2 * 4);
  EXPECT_EQ(footprint.formula,
            "3 layers x 5 KV heads x (192 key width + 128 value width) x 7 tokens x 2 batch x 4 "
            "bytes (f32) = 268800 bytes");
}

TEST(Footprint, TheSmallestIsTwoNumbers) {
  EXPECT_EQ(kv_cache_footprint({.format = Format::e4m3}).bytes, 2U);
  EXPECT_EQ(kv_cache_footprint({.tokens = 0}).bytes, 0U);
  EXPECT_EQ(kv_cache_footprint({.layers = kHuge, .num_heads_kv = kHuge, .batch = 0}).bytes, 0U);
}

TEST(Footprint, WhatDoesNotFitIsRefused) {
  EXPECT_THROW(kv_cache_footprint({.layers = -1}), Error);
  EXPECT_THROW(kv_cache_footprint({.batch = -5}), Error);
  EXPECT_THROW(kv_cache_footprint({.layers = kHuge, .tokens = 2}), Error);
  EXPECT_THROW(kv_cache_footprint({.key_width = kHuge, .value_width = kHuge}), Error);
  const Footprint largest =
      kv_cache_footprint({.key_width = kHuge, .value_width = kHuge, .format = Format::e4m3});
  EXPECT_EQ(largest.bytes, std::numeric_limits<std::uint64_t>::max() - 1);
  try {
    kv_cache_footprint({.num_heads_kv = -3});
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "footprint: kv heads is -3; it must not be negative");
  }
}

TEST(ReadableBytes, UsesBinaryUnits) {
  EXPECT_EQ(readable_bytes(0), "0 bytes");
  EXPECT_EQ(readable_bytes(1023), "1023 bytes");
  EXPECT_EQ(readable_bytes(1024), "1 KiB");
  EXPECT_EQ(readable_bytes(1536), "1.5 KiB");
  EXPECT_EQ(readable_bytes(1073741824), "1 GiB");
  EXPECT_EQ(readable_bytes(1073741823), "1 GiB");
  EXPECT_EQ(readable_bytes(10240), "10 KiB");
  EXPECT_EQ(readable_bytes(std::numeric_limits<std::uint64_t>::max()), "16 EiB");
}

}  // namespace
}  // namespace attest
