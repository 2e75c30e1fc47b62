// A second compiler is a second opinion: our f32 flash kernel as nvcc and as clang write it, run on
// the same operands. The two differ in which products they fuse with which sums (both contract), in
// nothing else. So: where every sum is exact the bits are equal; elsewhere the difference is
// bounded by twice the rounding error of one program.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <regex>

#include "optimized/emulator/engine/test_program.hpp"
#include "optimized/kernels/attention_arguments.cuh"

namespace attest::emulator {
namespace {

constexpr int kSequence = 128, kDepth = 64;

std::vector<float> drawn(unsigned seed) {
  std::vector<float> x(std::size_t(kSequence) * kDepth);
  for (float& f : x) {
    seed = seed * 1664525u + 1013904223u;  // Numerical Recipes, section 7.1
    f = float(seed >> 8) / float(1 << 23) - 1.0f;
  }
  return x;
}

struct Result {
  std::vector<float> o, lse;
};

kernels::View view_of(float* data, int width) {
  kernels::View made;
  made.data = data;
  made.row = width;
  made.batch = made.head = std::int64_t(kSequence) * width;
  made.vectors = width % 4 == 0;
  return made;
}

Result flash(const char* path, const std::vector<float>& q, const std::vector<float>& k,
             const std::vector<float>& v) {
  Device& device = Device::instance();
  device.configure({});
  const std::string text = text_of(path);
  const auto module = device.load(text);
  const std::regex entry("\\.entry ([A-Za-z0-9_]*flash_prefill[A-Za-z0-9_]*Li8E[A-Za-z0-9_]*)\\(");
  std::smatch match;
  EXPECT_TRUE(std::regex_search(text, match, entry)) << path;
  const std::string kernel = match[1];
  Buffer<float> dq(q.size()), dk(k.size()), dv(v.size()), o(q.size()), lse(kSequence);
  std::copy(q.begin(), q.end(), dq.begin());
  std::copy(k.begin(), k.end(), dk.begin());
  std::copy(v.begin(), v.end(), dv.begin());
  kernels::AttentionArguments a{};
  a.q = view_of(dq.data(), kDepth), a.k = view_of(dk.data(), kDepth);
  a.v = view_of(dv.data(), kDepth), a.o = view_of(o.data(), kDepth);
  a.lse = view_of(lse.data(), 1);
  a.query_heads = a.kv_heads = 1;
  a.queries = a.keys = kSequence;
  a.depth = a.v_depth = kDepth;
  a.window_left = a.window_right = -1;
  a.scale = 1.0f / std::sqrt(float(kDepth));
  a.nats_per_unit = a.scale;
  a.bits_per_unit = a.scale * kernels::kLog2E;
  unsigned row_tiles = kSequence / 32;
  void* arguments[] = {&a, &row_tiles};
  EXPECT_EQ(device.launch(*module, kernel,
                          {.grid = {row_tiles},
                           .block = {64},
                           .dynamic_shared_bytes = 48 * 1024,
                           .arguments = arguments}),
            Device::Status::ok)
      << path;
  for (const CheckerFinding& finding : device.findings()) ADD_FAILURE() << finding.what;
  device.reset_findings();
  return {o.values(), lse.values()};
}

// All scores are 0, so all weights are 1; the values are small integers and their number a power of
// two: every sum and the division are exact.
TEST(SecondCompiler, GivesTheSameBitsWhereNothingIsRounded) {
  const std::vector<float> zero(std::size_t(kSequence) * kDepth, 0.0f);
  std::vector<float> v(zero.size());
  for (std::size_t i = 0; i < v.size(); ++i) v[i] = float(int(i * 2654435761u >> 20) % 31 - 15);
  const Result nvcc = flash(ATTEST_FLASH_PTX, zero, drawn(2), v);
  const Result clang = flash(ATTEST_FLASH_CLANG_PTX, zero, drawn(2), v);
  EXPECT_EQ(nvcc.o, clang.o);
  EXPECT_EQ(nvcc.lse, clang.lse);
  for (int c = 0; c < kDepth; ++c) {
    float sum = 0;
    for (int j = 0; j < kSequence; ++j) sum += v[std::size_t(j) * kDepth + c];
    EXPECT_EQ(nvcc.o[c], sum / kSequence) << c;
  }
}

// Higham, Accuracy and Stability, section 3.1: a sum of n terms errs by gamma_n = n u / (1 - n u)
// of the sum of their magnitudes, in any order and with any fusing.
TEST(SecondCompiler, DiffersByRoundingOnly) {
  const std::vector<float> q = drawn(3), k = drawn(4), v = drawn(5);
  const Result nvcc = flash(ATTEST_FLASH_PTX, q, k, v);
  const Result clang = flash(ATTEST_FLASH_CLANG_PTX, q, k, v);
  const double u = 0x1p-24;
  const auto gamma = [&](int n) { return n * u / (1 - n * u); };
  double magnitude = 0;  // of the largest score, as a sum of magnitudes
  for (int i = 0; i < kSequence; ++i) {
    for (int j = 0; j < kSequence; ++j) {
      double sum = 0;
      for (int c = 0; c < kDepth; ++c)
        sum += std::fabs(double(q[i * kDepth + c]) * k[j * kDepth + c]);
      magnitude = std::max(magnitude, sum / std::sqrt(double(kDepth)));
    }
  }
  // A score and the maximum it is shifted by: kDepth products, scaling, conversion to base 2.
  const double score = 2 * gamma(kDepth + 3) * magnitude;
  // A weight: exp of that, 2 ulps of ex2 and of each rescaling, once per tile of 32 keys.
  const int tiles = kSequence / 32;
  const double weight = std::expm1(score) + gamma(4 + 6 * tiles);
  // Numerator and denominator both sum kSequence weights; |v| <= 1; then a division.
  const double output = 2 * (weight + gamma(kSequence)) + gamma(3);
  for (std::size_t i = 0; i < nvcc.o.size(); ++i)
    ASSERT_LE(std::fabs(double(nvcc.o[i]) - clang.o[i]), 2 * output) << i;
  for (std::size_t i = 0; i < nvcc.lse.size(); ++i)
    ASSERT_LE(std::fabs(double(nvcc.lse[i]) - clang.lse[i]), 2 * (output + score + gamma(4) * 8))
        << i;
}

}  // namespace
}  // namespace attest::emulator
