// A second compiler is a second opinion: our f32 flash kernel as nvcc and as clang write it, run on
// the same operands. The two differ in which products they fuse with which sums (both contract), in
// nothing else. So: where every sum is exact the bits are equal; elsewhere the difference is
// bounded by twice the rounding error of one program.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "optimized/emulator/engine/testing/drawn_values.hpp"
#include "optimized/emulator/engine/testing/flash_setup.hpp"
#include "optimized/emulator/engine/testing/test_program.hpp"

namespace attest::emulator {
namespace {

constexpr int kSequence = 128, kDepth = kFlashDepth;

std::vector<float> drawn(unsigned seed) {
  return drawn_values(seed, std::size_t(kSequence) * kDepth);
}

struct Result {
  std::vector<float> o, lse;
};

Result flash(const char* path, const std::vector<float>& q, const std::vector<float>& k,
             const std::vector<float>& v) {
  Device& device = Device::instance();
  device.configure({});
  const std::string text = text_of(path);
  const auto module = device.load(text);
  const std::string kernel = flash_kernel(text);
  EXPECT_FALSE(kernel.empty()) << path;
  Buffer<float> dq(q.size()), dk(k.size()), dv(v.size()), o(q.size()), lse(kSequence);
  std::copy(q.begin(), q.end(), dq.begin());
  std::copy(k.begin(), k.end(), dk.begin());
  std::copy(v.begin(), v.end(), dv.begin());
  kernels::AttentionArguments a =
      flash_arguments(dq.data(), dk.data(), dv.data(), o.data(), lse.data(), kSequence);
  unsigned row_tiles = kSequence / kFlashRows;
  void* arguments[] = {&a, &row_tiles};
  EXPECT_EQ(device.launch(*module, kernel,
                          {.grid = {row_tiles},
                           .block = {kFlashThreads},
                           .dynamic_shared_bytes = kFlashSharedBytes,
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
