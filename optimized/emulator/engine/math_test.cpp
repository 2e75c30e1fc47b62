// CUDA's math functions as nvcc inlines them, run on the engine and compared with long double on
// the host: their error must stay within what the CUDA C++ Programming Guide documents (section
// "Mathematical Functions"). And the approximate instructions against long double over every
// exponent, in bits. A wrong rounding of one fma would break the first.
#include <cmath>
#include <cstring>

#include <gtest/gtest.h>

#include "optimized/emulator/engine/testing/test_program.hpp"

namespace attest::emulator {
namespace {

float from_bits(std::uint32_t b) {
  float f;
  std::memcpy(&f, &b, sizeof f);
  return f;
}
std::uint32_t to_bits(float f) {
  std::uint32_t b;
  std::memcpy(&b, &f, sizeof b);
  return b;
}

/// Distance in units of the last place of the exact value.
long double ulps(float got, long double exact) {
  const float nearest = float(exact);
  if (std::isnan(nearest) || std::isnan(got))
    return std::isnan(nearest) && std::isnan(got) ? 0 : INFINITY;
  if (std::isinf(nearest) || std::isinf(got)) return nearest == got ? 0 : INFINITY;
  int exponent = 0;
  std::frexp(nearest, &exponent);
  const long double ulp = std::ldexp(1.0L, std::max(exponent - 24, -149));
  return std::fabs(got - exact) / ulp;
}

struct Documented {
  const char* name;
  long double (*exact)(long double x);
  long double ulp_max;  // the guide's figure
};
long double power(long double x) {
  return std::pow(std::fabs(x), (long double)(0.3f));
}
const Documented kFunctions[] = {
    {"expf", [](long double x) { return std::exp(x); }, 2},
    {"logf", [](long double x) { return std::log(std::fabs(x)); }, 1},
    {"exp2f", [](long double x) { return std::exp2(x); }, 2},
    {"sinf", [](long double x) { return std::sin(x); }, 2},
    {"cosf", [](long double x) { return std::cos(x); }, 2},
    {"tanhf", [](long double x) { return std::tanh(x); }, 2},
    {"sqrtf", [](long double x) { return std::sqrt(std::fabs(x)); }, 0.5L},
    {"1/x", [](long double x) { return 1 / x; }, 0.5L},
    {"rsqrtf", [](long double x) { return 1 / std::sqrt(std::fabs(x)); }, 2},
    {"powf", power, 4},
    {"erff", [](long double x) { return std::erf(x); }, 2},
    {"log2f", [](long double x) { return std::log2(std::fabs(x)); }, 1},
};

std::vector<float> arguments() {
  std::vector<float> x;
  std::uint32_t seed = 12345;
  for (int i = 0; i < 20000; ++i) {
    seed = seed * 1664525u + 1013904223u;
    const float unit = float(seed >> 8) / float(1 << 24);
    switch (i % 4) {
      case 0:
        x.push_back(200 * unit - 100);
        break;
      case 1:
        x.push_back(2 * unit - 1);
        break;
      case 2:
        x.push_back(1 + (unit - 0.5f) / 64);
        break;
      default:
        x.push_back(20000 * unit - 10000);
    }
  }
  for (float f :
       {0.0f, 1.0f, -1.0f, 0.5f, 88.72284f, -87.3f, -103.9f, -110.0f, 1e-30f, 3e38f, 1e-40f})
    x.push_back(f);
  return x;
}

TEST(MathFunctions, StayWithinCudasDocumentedError) {
  choose("avx512");
  TestProgram program(text_of(ATTEST_PROGRAMS_PTX));
  const std::vector<float> x = arguments();
  Buffer<float> in(x.size()), out(x.size() * std::size(kFunctions));
  std::copy(x.begin(), x.end(), in.begin());
  EXPECT_EQ(program.trouble("math", {{std::uint32_t((x.size() + 127) / 128)}, {128}}, in.data(),
                            out.data(), int(x.size())),
            "");
  for (std::size_t f = 0; f < std::size(kFunctions); ++f) {
    long double worst = 0;
    float at = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
      const long double u = ulps(out[i * std::size(kFunctions) + f], kFunctions[f].exact(x[i]));
      if (!(u <= worst)) worst = u, at = x[i];
    }
    EXPECT_LE(worst, kFunctions[f].ulp_max) << kFunctions[f].name << "(" << at << ")";
    RecordProperty(kFunctions[f].name, std::to_string(double(worst)));
  }
}

/// The whole range of an approximate instruction, one input in `stride`.
void sweep(const char* instruction, long double (*exact)(long double), std::uint32_t stride) {
  const std::string text =
      std::string(
          ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 out, "
          ".param .u32 first, .param .u32 stride)\n{\n") +
      ".reg .b32 %t, %n, %b, %x, %f, %s, %y; .reg .b64 %p, %o;\nld.param.u64 %p, [out]; "
      "ld.param.u32 %f, [first]; ld.param.u32 %s, [stride];\n" +
      "mov.u32 %t, %tid.x; mov.u32 %b, %ctaid.x; mov.u32 %n, %ntid.x; mad.lo.u32 %t, %b, %n, %t; "
      "mad.lo.u32 %x, %t, %s, %f;\n" +
      instruction +
      " %y, %x;\nmul.wide.u32 %o, %t, 4; add.u64 %p, %p, %o; st.global.u32 [%p], %y; ret;\n}\n";
  constexpr std::uint32_t kCount = 1 << 18;
  const auto run = [&](const char* isa, std::uint32_t first) {
    choose(isa);
    TestProgram program(text);
    Buffer<std::uint32_t> out(kCount);
    EXPECT_EQ(program.trouble("k", {{kCount / 256}, {256}}, out.data(), first, stride), "");
    return out.values();
  };
  for (std::uint32_t first : {0u, 0x3f000000u, 0x40000000u, 0xbf800000u, 0x80000001u}) {
    const std::vector<std::uint32_t> widest = run("avx512", first);
    EXPECT_EQ(widest, run("avx2", first)) << instruction;
    EXPECT_EQ(widest, run("baseline", first)) << instruction;
    int differing = 0;
    for (std::uint32_t i = 0; i < kCount; ++i) {
      const float x = from_bits(first + i * stride), y = from_bits(widest[i]);
      const long double value = exact(x);
      const float nearest = std::isnan(value) ? from_bits(0x7fffffff) : float(value);
      if (to_bits(y) == to_bits(nearest)) continue;
      // Long double itself rounds: only a value within 2^-10 ulp of the middle may differ.
      EXPECT_LE(ulps(y, value), 0.5L + 0x1p-10L)
          << instruction << " of " << std::hexfloat << x << " gave " << y << ", not " << nearest;
      if (++differing > 8) break;
    }
  }
}

TEST(ApproximateInstructions, AreCorrectlyRoundedAndTheSameEverywhere) {
  sweep(
      "ex2.approx.f32", [](long double x) { return std::exp2(x); }, 1021);
  sweep(
      "lg2.approx.f32", [](long double x) { return x < 0 ? NAN : std::log2(x); }, 1021);
  sweep(
      "rsqrt.approx.f32", [](long double x) { return x < 0 ? (long double)NAN : 1 / std::sqrt(x); },
      1021);
  sweep(
      "rcp.approx.f32", [](long double x) { return 1 / x; }, 1021);
  sweep(
      "sqrt.approx.f32", [](long double x) { return std::sqrt(x); }, 1021);
  sweep(
      "tanh.approx.f32", [](long double x) { return std::tanh(x); }, 1021);
  // The host's long double reduces huge angles correctly too (glibc).
  sweep(
      "sin.approx.f32", [](long double x) { return std::sin(x); }, 1021);
  sweep(
      "cos.approx.f32", [](long double x) { return std::cos(x); }, 1021);
}

}  // namespace
}  // namespace attest::emulator
