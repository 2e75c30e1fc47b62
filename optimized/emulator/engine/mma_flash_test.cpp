// A flash attention kernel with tensor cores (programs/mma_flash.cu), compiled by nvcc, under every
// tensor model that has its mma: within a bound that follows from what the kernel rounds, exactly
// where nothing rounds, and silent with all checkers on.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "optimized/emulator/engine/testing/mma_program.hpp"

namespace attest::emulator {
namespace {

constexpr int kDepth = 64;

struct Model {
  const char* name;
  int fraction_bits, group;  // of notes/0001-tensor-arithmetic.md; a fused chain is groups of one
};
constexpr Model kModels[] = {{"f32", 24, 1},    {"sm_80", 24, 8},   {"sm_89", 24, 8},
                             {"sm_90", 25, 16}, {"sm_100", 25, 16}, {"sm_120", 25, 16}};

std::uint16_t to_bf16(float x) {
  return std::uint16_t(std::bit_cast<std::uint32_t>(x) >> 16);
}
double from_bf16(std::uint16_t x) {
  return std::bit_cast<float>(std::uint32_t(x) << 16);
}

struct Attention {
  int queries, keys;
  float bits_per_unit;
  std::vector<std::uint16_t> q, k, v;
};

void configure(const char* isa, const char* model, const char* checks) {
  choose_model({isa, "bare"}, model);
  DeviceOptions options = Device::instance().options();
  std::string problem;
  options.checks = *parse_checks(checks, problem);
  Device::instance().configure(options);
}

std::vector<float> run(const Attention& a, const char* kernel = "mma_flash") {
  TestProgram program(text_of(ATTEST_MMA_FLASH_PTX));
  Buffer<std::uint16_t> q(a.q.size()), k(a.k.size()), v(a.v.size());
  std::copy(a.q.begin(), a.q.end(), q.begin());
  std::copy(a.k.begin(), a.k.end(), k.begin());
  std::copy(a.v.begin(), a.v.end(), v.begin());
  Buffer<float> o(a.q.size(), NAN);
  EXPECT_EQ(program.trouble(kernel, {.grid = {unsigned(a.queries) / 64}, .block = {128}}, q.data(),
                            k.data(), v.data(), o.data(), a.queries, a.keys, a.bits_per_unit),
            "");
  for (const CheckerFinding& finding : Device::instance().findings())
    ADD_FAILURE() << finding.kind << ": " << finding.what;
  return o.values();
}

Attention drawn(int queries, int keys, std::uint64_t seed) {
  Attention a{queries, keys, 0.125f * 1.44269504f, {}, {}, {}};
  Random random{seed};
  const auto fill = [&](std::vector<std::uint16_t>& x, int rows) {
    x.resize(std::size_t(rows) * kDepth);
    for (std::uint16_t& h : x) h = to_bf16(float(double(random() >> 11) * 0x1p-51 - 2.0));
  };
  fill(a.q, queries), fill(a.k, keys), fill(a.v, keys);
  return a;
}

/// One row by the textbook, in double, and how far from it the kernel may be.
///
/// Let u = 2^-24, t = L 2^-F + 2^-23 the error of one alignment group relative to what it adds
/// (L products cut below 2^-F of the largest, the result below its 24 bits; u when fused), in a
/// chain of n groups (1 + t)^n - 1. X bounds |score| in bits, R the number of tiles after the
/// first.
/// - argument of exp2, in bits: c E from Q K^T, with E = ((1 + t)^(64 / L) - 1) sum |q k|; u 2X for
/// the
///   fused multiply-add; 2 u X since maximum * c is rounded while differences of maxima are not; 2
///   u 2X for the rescaling arguments, which telescope
/// - exp2, correctly rounded here: u each time it is used, 1 + R; rescaling multiplications: u each
/// - P rounded to bf16: 2^-8, in the numerator only; P V: (1 + t)^(keys / L) (1 + u)^R
/// - row sums: one u per addition, keys / 4 + 2 at most, and R; division: u
void compare_row(const Attention& a, const Model& model, int row, const float* out) {
  const double u = 0x1p-24, c = a.bits_per_unit, tiles = a.keys / 64 - 1;
  const double t =
      model.group == 1 ? u : model.group * std::ldexp(1.0, -model.fraction_bits) + 0x1p-23;
  std::vector<double> score(std::size_t(a.keys));
  double largest = -INFINITY, absolute = 0, most = 0;
  for (int j = 0; j < a.keys; ++j) {
    double sum = 0, sizes = 0;
    for (int i = 0; i < kDepth; ++i) {
      const double p = from_bf16(a.q[std::size_t(row * kDepth + i)]) *
                       from_bf16(a.k[std::size_t(j * kDepth + i)]);
      sum += p, sizes += std::fabs(p);
    }
    score[std::size_t(j)] = sum * c;
    largest = std::max(largest, sum * c);
    absolute = std::max(absolute, sizes), most = std::max(most, std::fabs(sum * c));
  }
  const double of_score = (std::pow(1 + t, kDepth / model.group) - 1) * absolute * c;
  const double argument = of_score + u * (2 + 2 + 4) * (most + of_score);
  const double weight = std::exp2(argument) * std::pow(1 + u, 1 + 2 * tiles) - 1;
  const double products = std::pow(1 + t, a.keys / model.group) * std::pow(1 + u, tiles) - 1;
  const double sums = std::pow(1 + u, a.keys / 4 + 2 + tiles) - 1;
  const double relative =
      (1 + weight) * (1 + 0x1p-8) * (1 + products) / ((1 - weight) * (1 - sums)) * (1 + u) - 1;
  double total = 0;
  for (double& s : score) s = std::exp2(s - largest), total += s;
  for (int i = 0; i < kDepth; ++i) {
    double sum = 0, sizes = 0;
    for (int j = 0; j < a.keys; ++j) {
      const double p = score[std::size_t(j)] * from_bf16(a.v[std::size_t(j * kDepth + i)]);
      sum += p, sizes += std::fabs(p);
    }
    ASSERT_LE(std::fabs(double(out[i]) - sum / total), relative * sizes / total)
        << model.name << ": row " << row << ", column " << i;
  }
}

TEST(MmaFlash, IsWithinItsBoundUnderEveryModel) {
  const Attention a = drawn(64, 256, 1);
  std::vector<std::vector<float>> results;
  for (const Model& model : kModels) {
    configure("avx512", model.name, "all");
    results.push_back(run(a));
    for (int row = 0; row < a.queries; ++row)
      compare_row(a, model, row, results.back().data() + row * kDepth);
  }
  // Architectures of one kind agree bit for bit; the others, and f32, do not.
  EXPECT_EQ(results[1], results[2]);
  EXPECT_EQ(results[3], results[4]);
  EXPECT_EQ(results[3], results[5]);
  EXPECT_NE(results[0], results[1]);
  EXPECT_NE(results[1], results[3]);
}

TEST(MmaFlash, IsTheSameOnEveryInstructionSet) {
  const Attention a = drawn(64, 128, 2);
  for (const char* model : {"f32", "sm_80", "sm_90"}) {
    configure("avx512", model, "memcheck");
    const std::vector<float> wide = run(a);
    for (const char* isa : {"baseline", "avx2"}) {
      configure(isa, model, "memcheck");
      EXPECT_EQ(run(a), wide) << isa << " " << model;
    }
  }
}

TEST(MmaFlash, IsTheSameWhenTilesAreCopiedAsynchronously) {
  const Attention a = drawn(128, 320, 5);
  for (const char* isa : {"baseline", "avx2", "avx512"}) {
    configure(isa, "f32", "all");
    const std::vector<float> plain = run(a);
    EXPECT_EQ(run(a, "mma_flash_async"), plain) << isa;
  }
}

// Queries of zeros weigh all keys alike: with 2^n keys the output is a mean of integers, and exact.
TEST(MmaFlash, MeansOfIntegersAreExact) {
  Attention a = drawn(128, 512, 3);
  std::fill(a.q.begin(), a.q.end(), std::uint16_t(0));
  Random random{4};
  for (std::uint16_t& h : a.v) h = to_bf16(float(random.below(256)) - 128);
  for (const Model& model : kModels) {
    configure("avx512", model.name, "memcheck");
    const std::vector<float> o = run(a);
    for (int i = 0; i < kDepth; ++i) {
      double sum = 0;
      for (int j = 0; j < a.keys; ++j) sum += from_bf16(a.v[std::size_t(j * kDepth + i)]);
      for (int row = 0; row < a.queries; ++row)
        ASSERT_EQ(o[std::size_t(row * kDepth + i)], float(sum / a.keys)) << model.name;
    }
  }
}

}  // namespace
}  // namespace attest::emulator
