// Second opinion on reference/formats: CUDA's own host conversions, for every 8- and 16-bit pattern
// and around every midpoint. It runs no kernel; the CUDA headers compile as plain C++.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include "reference/formats.hpp"

namespace attest {
namespace {

// Both sides must say NaN, or the same bits: CUDA's NaN patterns differ from ours, and may.
void expect_same(Format format, std::uint32_t ours, std::uint32_t theirs, double number) {
  const double a = decode(format, ours), b = decode(format, theirs);
  if (std::isnan(a) && std::isnan(b)) return;
  EXPECT_EQ(ours, theirs) << "encoding " << number;
}

std::uint32_t cuda_encode(Format format, double number, bool saturate) {
  const auto overflow = saturate ? __NV_SATFINITE : __NV_NOSAT;
  switch (format) {
    case Format::f16:
      return __half_raw(__double2half(number)).x;
    case Format::bf16:
      return __nv_bfloat16_raw(__double2bfloat16(number)).x;
    case Format::e4m3:
      return __nv_cvt_double_to_fp8(number, overflow, __NV_E4M3);
    case Format::e5m2:
      return __nv_cvt_double_to_fp8(number, overflow, __NV_E5M2);
    case Format::f32:
    case Format::i8:  // none of float_formats()
      break;
  }
  const auto rounded_once = static_cast<float>(number);
  std::uint32_t pattern;
  std::memcpy(&pattern, &rounded_once, sizeof pattern);
  return pattern;
}

double cuda_decode(Format format, std::uint32_t pattern) {
  switch (format) {
    case Format::f16: {
      __half_raw raw;
      raw.x = static_cast<unsigned short>(pattern);
      return __half2float(__half(raw));
    }
    case Format::bf16: {
      __nv_bfloat16_raw raw;
      raw.x = static_cast<unsigned short>(pattern);
      return __bfloat162float(__nv_bfloat16(raw));
    }
    case Format::e4m3:
    case Format::e5m2: {
      const auto kind = format == Format::e4m3 ? __NV_E4M3 : __NV_E5M2;
      const __half_raw half =
          __nv_cvt_fp8_to_halfraw(static_cast<__nv_fp8_storage_t>(pattern), kind);
      return __half2float(__half(half));
    }
    case Format::f32:
    case Format::i8:  // none of float_formats()
      break;
  }
  float number;
  std::memcpy(&number, &pattern, sizeof number);
  return number;
}

void compare_encodings(Format format, double number) {
  expect_same(format, encode(format, number), cuda_encode(format, number, false), number);
  if (facts(format).bits == 8) {
    expect_same(format, encode_saturating(format, number), cuda_encode(format, number, true),
                number);
  }
}

TEST(FormatsAgainstCuda, EveryPatternMeansTheSameNumber) {
  for (Format format : float_formats()) {
    if (format == Format::f32) continue;
    for (std::uint32_t pattern = 0; pattern < (1U << facts(format).bits); ++pattern) {
      const double ours = decode(format, pattern), theirs = cuda_decode(format, pattern);
      ASSERT_EQ(std::isnan(ours), std::isnan(theirs)) << std::hex << pattern;
      if (!std::isnan(ours)) {
        ASSERT_EQ(ours, theirs) << std::hex << pattern;
        ASSERT_EQ(std::signbit(ours), std::signbit(theirs)) << std::hex << pattern;
      }
    }
  }
}

TEST(FormatsAgainstCuda, EveryMidpointAndItsNeighboursRoundTheSame) {
  for (Format format : float_formats()) {
    if (format == Format::f32) continue;
    for (std::uint32_t low = 0; low <= facts(format).max_pattern; ++low) {
      const double a = decode(format, low);
      const double middle = a + ulp(format, a) / 2;
      for (double sign : {1.0, -1.0}) {
        compare_encodings(format, sign * a);
        compare_encodings(format, sign * middle);
        compare_encodings(format, sign * std::nextafter(middle, 0.0));
        compare_encodings(format,
                          sign * std::nextafter(middle, std::numeric_limits<double>::infinity()));
      }
    }
  }
}

TEST(FormatsAgainstCuda, AnyDoubleRoundsTheSame) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 300000; ++i) {
    const double number = std::ldexp(static_cast<double>(random() >> 11) * 0x1p-53 - 0.5,
                                     static_cast<int>(random() % 320) - 170);
    for (Format format : float_formats()) compare_encodings(format, number);
  }
  for (double number :
       {0.0, -0.0, std::numeric_limits<double>::infinity(),
        -std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN(),
        std::numeric_limits<double>::denorm_min()}) {
    for (Format format : float_formats()) compare_encodings(format, number);
  }
}

}  // namespace
}  // namespace attest
