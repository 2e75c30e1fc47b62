// The moments of sums against sums: f32 by std::fma, tensor cores bit for bit (reference/model).
#include "reference/statistics/chains.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <random>

#include "reference/formats.hpp"

namespace attest::statistics {
namespace {

constexpr std::size_t kLanes = 64;

struct Drawn {
  std::vector<double> a;
  Lanes b;
};

/// `positive`: magnitudes of normals; otherwise normals.
Drawn draw(std::size_t terms, Format format, bool positive, std::mt19937_64& random) {
  std::normal_distribution<double> normal(0.0, 1.0);
  const auto number = [&] {
    const double drawn = rounded(format, normal(random));
    return positive ? std::fabs(drawn) : drawn;
  };
  Drawn drawn;
  drawn.b.lanes = kLanes;
  drawn.b.least = smallest_normal(format);
  for (std::size_t n = 0; n < terms; ++n) {
    drawn.a.push_back(number());
    for (std::size_t c = 0; c < kLanes; ++c) {
      drawn.b.number.push_back(number());
      drawn.b.last.push_back(static_cast<float>(last_bit(drawn.b.number.back())));
    }
  }
  return drawn;
}

Factor factor(const Drawn& drawn, std::size_t n) {
  return {drawn.a[n], last_bit(drawn.a[n]), drawn.b.number.data() + n * kLanes,
          drawn.b.last.data() + n * kLanes};
}

/// Over many sums: the mean error beyond the modelled one, over what that sum should vary by; the
/// root of squared errors over their variance; and the mean error over the modelled one.
struct Against {
  double mean_z = 0, deviation = 0, bias = 0;
};

/// Lanes of many draws, of which each is one sum.
template <class Modelled, class Summed>
Against compare(std::size_t terms, Format format, bool positive, Modelled modelled, Summed summed) {
  std::mt19937_64 random(terms);
  double squares = 0, variances = 0, errors = 0, means = 0;
  const std::size_t draws = 24;
  for (std::size_t draw_number = 0; draw_number < draws; ++draw_number) {
    const Drawn drawn = draw(terms, format, positive, random);
    Chains chains(kLanes);
    modelled(chains, drawn);
    for (std::size_t c = 0; c < kLanes; ++c) {
      const double error = summed(drawn, c) - chains.sum[c];
      squares += (error - chains.mean[c]) * (error - chains.mean[c]);
      variances += chains.variance[c];
      errors += error;
      means += chains.mean[c];
    }
  }
  return {(errors - means) / std::sqrt(variances), std::sqrt(squares / variances), errors / means};
}

Against f32_chain(std::size_t terms, Format format, bool positive) {
  return compare(
      terms, format, positive,
      [](Chains& chains, const Drawn& drawn) {
        for (std::size_t n = 0; n < drawn.a.size(); ++n) chains.add(factor(drawn, n));
      },
      [](const Drawn& drawn, std::size_t c) {
        float sum = 0;
        for (std::size_t n = 0; n < drawn.a.size(); ++n) {
          sum = std::fma(static_cast<float>(drawn.a[n]),
                         static_cast<float>(drawn.b.number[n * kLanes + c]), sum);
        }
        return static_cast<double>(sum);
      });
}

Against tensor_chain(std::size_t terms, Format format, Index step, bool positive) {
  const TensorCore core = tensor_core(step, format, format);
  return compare(
      terms, format, positive,
      [&](Chains& chains, const Drawn& drawn) {
        std::vector<Factor> factors;
        for (std::size_t n = 0; n < drawn.a.size(); ++n) factors.push_back(factor(drawn, n));
        const auto width = static_cast<std::size_t>(core.step);
        for (std::size_t n = 0; n < factors.size(); n += width) {
          chains.step(std::span(factors).subspan(n, std::min(width, factors.size() - n)), core,
                      smallest_normal(format), drawn.b.least);
        }
      },
      [&](const Drawn& drawn, std::size_t c) {
        Operands a, b;
        a.resize(drawn.a.size());
        b.resize(drawn.a.size());
        for (std::size_t n = 0; n < drawn.a.size(); ++n) {
          a.set(n, drawn.a[n], format);
          b.set(n, drawn.b.number[n * kLanes + c], format);
        }
        return tensor_sum(core, 0, a, 0, b, 0, drawn.a.size());
      });
}

// 1536 sums each. Where operands have few bits few additions round, and those that do are ties more
// often than the model thinks: up to 1.15 was met.
TEST(Chains, F32SumsErrAsModelled) {
  for (Format format : {Format::f32, Format::f16, Format::bf16}) {
    for (bool positive : {false, true}) {
      for (std::size_t terms : {8, 64, 512}) {
        const Against z = f32_chain(terms, format, positive);
        std::printf("f32, format %d, %s, %4zu: mean of z %6.3f, deviation %.3f\n",
                    static_cast<int>(format), positive ? "one sign " : "two signs", terms, z.mean_z,
                    z.deviation);
        EXPECT_LT(std::fabs(z.mean_z), 4);
        EXPECT_GT(z.deviation, 0.9);
        EXPECT_LT(z.deviation, format == Format::f32 ? 1.1 : 1.25);
      }
    }
  }
}

TEST(Chains, TensorCoresErrAsModelledAndAsMuchTowardsZero) {
  for (Index step : {4, 8, 16}) {
    for (Format format : {Format::f16, Format::bf16}) {
      for (bool positive : {false, true}) {
        for (std::size_t terms : {32, 512}) {
          const Against z = tensor_chain(terms, format, step, positive);
          std::printf("step %2d, format %d, %s, %4zu: mean of z %6.3f, deviation %.3f, bias %.3f\n",
                      static_cast<int>(step), static_cast<int>(format),
                      positive ? "one sign " : "two signs", terms, z.mean_z, z.deviation, z.bias);
          EXPECT_GT(z.deviation, 0.9);
          EXPECT_LT(z.deviation, 1.5);
          if (positive && terms == 512) {
            EXPECT_NEAR(z.bias, 1, 0.03);
          }
        }
      }
    }
  }
}

TEST(Chains, AModelThatForgetsHowFewBitsProductsHaveIsFarOff) {
  const Against forgetful = compare(
      64, Format::bf16, false,
      [](Chains& chains, const Drawn& drawn) {
        for (std::size_t n = 0; n < drawn.a.size(); ++n) {
          Factor one = factor(drawn, n);
          one.last = 0x1p-149;  // as if any bit might be set
          chains.add(one);
        }
      },
      [](const Drawn& drawn, std::size_t c) {
        float sum = 0;
        for (std::size_t n = 0; n < drawn.a.size(); ++n) {
          sum = std::fma(static_cast<float>(drawn.a[n]),
                         static_cast<float>(drawn.b.number[n * kLanes + c]), sum);
        }
        return static_cast<double>(sum);
      });
  EXPECT_LT(forgetful.deviation, 0.75);
}

TEST(Chains, LastBits) {
  EXPECT_EQ(last_bit(1), 1);
  EXPECT_EQ(last_bit(-1.5), 0.5);
  EXPECT_EQ(last_bit(1 + 0x1p-23), 0x1p-23);
  EXPECT_EQ(last_bit(0x1.8p-130), 0x1p-131);
  EXPECT_GT(last_bit(0), 0x1p99);
  EXPECT_EQ(binade(-3.5), 2);
  EXPECT_EQ(binade(0), 0);
}

}  // namespace
}  // namespace attest::statistics
