// The fills: identical on every machine, in place while shapes shrink, and each true to its
// purpose.
#include "properties/fills.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>

#include "properties/counter_random.hpp"
#include "reference/formats.hpp"
#include "reference/text.hpp"

namespace attest {
namespace {

std::uint64_t digest(std::uint64_t hash, const Tensor& tensor) {  // FNV-1a over the stored bytes
  for (const std::byte byte : tensor.bytes) {
    hash = (hash ^ static_cast<std::uint64_t>(byte)) * 0x100000001b3ULL;
  }
  return hash;
}

std::uint64_t digest(const Values& values) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const Tensor* tensor : {&values.q, &values.k, &values.v}) hash = digest(hash, *tensor);
  for (const auto* optional : {&values.bias, &values.alibi_slopes, &values.sinks}) {
    if (*optional) hash = digest(hash, **optional);
  }
  if (values.mask) {
    for (const std::uint8_t bit : values.mask->visible) hash = (hash ^ bit) * 0x100000001b3ULL;
  }
  return hash;
}

Values values_of(std::string_view line) {
  return make_values(parse_case(line));
}

double logit(const Case& c, const Values& values, Index i, Index j) {
  double x = 0;
  for (Index n = 0; n < c.problem.head_dim; ++n)
    x += values.q.at(0, 0, i, n) * values.k.at(0, 0, j, n);
  return x * c.problem.softmax_scale;
}

// Philox4x32-10's known-answer vectors, from Random123's kat_vectors.
TEST(CounterRandom, IsPhiloxWithItsKnownAnswers) {
  const r123::Philox4x32 philox;
  const auto zero = philox({{0, 0, 0, 0}}, {{0, 0}});
  EXPECT_EQ(zero[0], 0x6627e8d5U);
  EXPECT_EQ(zero[1], 0xe169c58dU);
  EXPECT_EQ(zero[2], 0xbc57ac4cU);
  EXPECT_EQ(zero[3], 0x9b00dbd8U);
  const std::uint32_t ones = 0xffffffffU;
  const auto full = philox({{ones, ones, ones, ones}}, {{ones, ones}});
  EXPECT_EQ(full[0], 0x408f276dU);
  EXPECT_EQ(full[1], 0x41c83b0eU);
  EXPECT_EQ(full[2], 0xa20bc7c6U);
  EXPECT_EQ(full[3], 0x6d5451fdU);
}

TEST(CounterRandom, EveryCoordinateCounts) {
  const auto base = random_bits(1, Stream::q, 1, 1, 1, 1);
  EXPECT_NE(random_bits(2, Stream::q, 1, 1, 1, 1), base);
  EXPECT_NE(random_bits(1ULL << 32 | 1, Stream::q, 1, 1, 1, 1), base);
  EXPECT_NE(random_bits(1, Stream::k, 1, 1, 1, 1), base);
  EXPECT_NE(random_bits(1, Stream::q, 2, 1, 1, 1), base);
  EXPECT_NE(random_bits(1, Stream::q, 1, 2, 1, 1), base);
  EXPECT_NE(random_bits(1, Stream::q, 1, 1, 2, 1), base);
  EXPECT_NE(random_bits(1, Stream::q, 1, 1, 1, 2), base);
  EXPECT_NE(random_bits(1, Stream::mask, -1, -1, -1, -1),
            random_bits(1, Stream::bias, -1, -1, -1, -1));
}

TEST(CounterRandom, BellHasMeanZeroAndVarianceOne) {
  double sum = 0, squares = 0;
  constexpr int kCount = 100000;
  for (int n = 0; n < kCount; ++n) {
    const double x = bell(random_bits(7, Stream::q, 0, 0, n, 0));
    ASSERT_LE(std::abs(x), 4.9);
    sum += x;
    squares += x * x;
  }
  // Six standard deviations of the mean, and of the mean square (at most sqrt(2/n)).
  EXPECT_LE(std::abs(sum / kCount), 6 / std::sqrt(kCount));
  EXPECT_LE(std::abs(squares / kCount - 1), 6 * std::sqrt(2.0 / kCount));
}

TEST(Fills, NamesAreUniqueAndNormalComesFirst) {
  std::set<std::string_view> names;
  for (const Fill& fill : fills()) {
    EXPECT_TRUE(names.insert(fill.name).second) << fill.name;
    EXPECT_FALSE(fill.purpose.empty()) << fill.name;
  }
  EXPECT_EQ(fills().front().name, "normal");
}

TEST(Fills, UnknownNamesAndImpossibleProblemsAreErrors) {
  Case test_case;
  test_case.fill = "nedle";
  try {
    make_values(test_case);
    FAIL() << "no Error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("needle"), std::string::npos) << error.what();
  }
  test_case.fill = "normal";
  test_case.problem.num_heads_q = 4;
  test_case.problem.num_heads_kv = 3;
  EXPECT_THROW(make_values(test_case), Error);
}

// Every fill, every format, every optional argument: the same bits on every machine and for ever.
TEST(Fills, StoredDigestsProveTheBits) {
  struct Stored {
    std::string_view format;
    std::uint64_t digest;
  };
  constexpr Stored kStored[] = {
      {"f32", 0x526cd6df70e99c63ULL},  {"f16", 0xd182745e0181bbf0ULL},
      {"bf16", 0x21b649949a2ddb35ULL}, {"e4m3", 0x2957a6243967e464ULL},
      {"e5m2", 0x117ff096c9ab5f3dULL},
  };
  for (const Stored& stored : kStored) {
    std::uint64_t all = 0;
    for (const Fill& fill : fills()) {
      const std::string line = "q=2x6x5x7 kv=3x35x4 in=" + std::string(stored.format) +
                               " bias alibi sinks mask fill=" + std::string(fill.name) +
                               " seed=12345678901234567890";
      all = all * 0x100000001b3ULL ^ digest(values_of(line));
    }
    EXPECT_EQ(all, stored.digest) << stored.format << std::hex << " 0x" << all;
  }
}

TEST(Fills, ValuesStayWhileShapesShrink) {
  for (const Fill& fill : fills()) {
    const std::string name(fill.name);
    // Equal head_dim, scale and Tk - Tq: everything else may shrink around a value.
    const Values large = values_of("q=2x4x20x8 kv=2x40x8 bias mask seed=5 fill=" + name);
    const Values small = values_of("q=1x2x3x8 kv=1x23x3 bias mask seed=5 fill=" + name);
    for (Index j = 0; j < 23; ++j) {
      for (Index c = 0; c < 8; ++c)
        ASSERT_EQ(small.k.at(0, 0, j, c), large.k.at(0, 0, j, c)) << name;
      for (Index c = 0; c < 3; ++c)
        ASSERT_EQ(small.v.at(0, 0, j, c), large.v.at(0, 0, j, c)) << name;
      for (Index i = 0; i < 3; ++i) {
        ASSERT_EQ(small.mask->at(0, i, j), large.mask->at(0, i, j)) << name;
        ASSERT_EQ(small.bias->at(0, 1, i, j), large.bias->at(0, 1, i, j)) << name;
      }
    }
    for (Index c = 0; c < 8; ++c) ASSERT_EQ(small.q.at(0, 1, 2, c), large.q.at(0, 1, 2, c)) << name;
  }
}

TEST(Fills, EveryValueIsFinite) {
  for (const Fill& fill : fills()) {
    for (const Format format : float_formats()) {
      Case c{parse_problem("q=1x2x5x3 kv=1x40x5"), std::string(fill.name), 3};
      c.problem.input = format;
      const Values values = make_values(c);
      for (const Tensor* tensor : {&values.q, &values.k, &values.v}) {
        for (Index n = 0; n < tensor->count(); ++n) {
          ASSERT_TRUE(std::isfinite(tensor->at(n))) << fill.name << " " << name_of(format);
        }
      }
    }
  }
}

TEST(Fills, LogitsAreWhereTheFillSays) {
  for (const std::string head_dim : {"1", "5", "64", "128"}) {
    const Case low = parse_case("q=1x1x4x" + head_dim + " kv=1x70x1 fill=logits_low");
    const Case high = parse_case("q=1x1x4x" + head_dim + " kv=1x70x1 fill=logits_high");
    const Case falling = parse_case("q=1x1x4x" + head_dim + " kv=1x70x1 fill=falling_maxima");
    const Case very_low = parse_case("q=1x1x4x" + head_dim + " kv=1x3x1 fill=logits_very_low");
    const Values at_low = make_values(low), at_high = make_values(high);
    const Values at_falling = make_values(falling), at_very_low = make_values(very_low);
    for (Index i = 0; i < 4; ++i) {
      for (Index j = 0; j < 70; ++j) {
        EXPECT_LT(logit(low, at_low, i, j), -88) << head_dim;  // exp underflows in f32 below -103
        EXPECT_GT(logit(high, at_high, i, j), 75) << head_dim;
      }
      EXPECT_LT(logit(very_low, at_very_low, i, 1), -5e4) << head_dim;
      // A gap that exp cannot bridge in f32, for tiles of 16, 32 and 64.
      for (const Index tile : {16, 32, 64}) {
        EXPECT_GT(logit(falling, at_falling, i, 0) - logit(falling, at_falling, i, tile), 104);
      }
    }
  }
}

TEST(Fills, ProductsOverflowF16AndValuesComeNearTheEnd) {
  const Case c = parse_case("q=1x1x3x2 kv=1x3x4 in=f16 out=f16 scale=0.0001 fill=overflow_f16");
  const Values values = make_values(c);
  EXPECT_GT(logit(c, values, 1, 2) / c.problem.softmax_scale, 65504);
  const Values large = values_of("q=1x1x1x2 kv=1x9x4 in=f16 out=f16 fill=large_values");
  for (Index n = 0; n < large.v.count(); ++n) EXPECT_GT(std::abs(large.v.at(n)), 4e4);
}

TEST(Fills, RampTellsEveryRowFromEveryOther) {
  const Values values = values_of("q=3x3x1x2 kv=3x9x1 fill=ramp");
  std::set<double> seen;
  for (Index n = 0; n < values.v.count(); ++n) EXPECT_TRUE(seen.insert(values.v.at(n)).second);
  EXPECT_EQ(values.v.at(2, 1, 3, 0), 214);
}

TEST(Fills, SlopesAreAlibisForEveryHeadCount) {
  const Values eight = values_of("q=1x8x1x1 kv=1x1x1 alibi");
  for (Index h = 0; h < 8; ++h) EXPECT_EQ(eight.alibi_slopes->at(h), std::ldexp(1.0, -1 - int(h)));
  const Values three = values_of("q=1x3x1x1 kv=1x1x1 alibi");
  EXPECT_EQ(three.alibi_slopes->at(0), std::ldexp(1.0, -4));
  EXPECT_EQ(three.alibi_slopes->at(1), std::ldexp(1.0, -8));
  EXPECT_EQ(three.alibi_slopes->at(2), std::ldexp(1.0, -2));  // first of the finer series
}

TEST(Fills, ArgumentsComeInEveryStyle) {
  bool hole = false, large_sink = false, first_tile_hidden = false, row_hidden = false;
  for (int seed = 0; seed < 40; ++seed) {
    const Values values =
        values_of("q=1x1x12x2 kv=1x70x2 bias mask sinks seed=" + std::to_string(seed));
    for (Index n = 0; n < values.bias->count(); ++n) hole |= std::isinf(values.bias->at(n));
    large_sink |= values.sinks->at(0) == 200;
    for (Index i = 0; i < 12; ++i) {
      Index first = 0, all = 0;
      for (Index j = 0; j < 70; ++j) {
        all += values.mask->at(0, i, j);
        if (j < 64) first += values.mask->at(0, i, j);
      }
      row_hidden |= all == 0;
      first_tile_hidden |= first == 0 && all > 0;
    }
  }
  EXPECT_TRUE(hole && large_sink && first_tile_hidden && row_hidden);
}

}  // namespace
}  // namespace attest
