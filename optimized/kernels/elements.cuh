// Elements: reading f32, f16, bf16, e4m3, e5m2 and i8 as f32 (always exact), and rounding f32 to an
// output format (to nearest even, overflow to infinity) or to a cache's (overflow to the largest
// number). Knows no tensor and no algorithm.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cfloat>
#include <cstdint>

#include "optimized/plugin/attest_subject.h"

namespace attest::kernels {

// e5m2 is the upper byte of an f16. e4m3 has no infinities, and one NaN per sign (all ones below
// the sign); moved to the place of an f16 it lacks 2^8, the difference of the exponent biases.
__device__ inline float from_e5m2(uint32_t bits) {
  return __half2float(__ushort_as_half(static_cast<unsigned short>(bits << 8)));
}
__device__ inline float from_e4m3(uint32_t bits) {
  const uint32_t magnitude = bits & 0x7FU;
  const auto shifted = static_cast<unsigned short>(((bits & 0x80U) << 8) | (magnitude << 7));
  const float number = __half2float(__ushort_as_half(shifted)) * 256.0F;
  return magnitude == 0x7FU ? __uint_as_float(0x7FC00000U) : number;
}

__device__ inline float from_i8(uint32_t bits) {
  return static_cast<float>(static_cast<signed char>(bits & 0xFFU));
}

/// Four consecutive elements of four elements' alignment. Unpacked from one load of 4 to 16 bytes.
template <uint32_t kFormat>
__device__ inline float4 load_four(const void* base, int64_t index) {
  if constexpr (kFormat == ATTEST_F32) {
    return *reinterpret_cast<const float4*>(static_cast<const float*>(base) + index);
  } else if constexpr (kFormat == ATTEST_F16 || kFormat == ATTEST_BF16) {
    const uint2 pair =
        *reinterpret_cast<const uint2*>(static_cast<const unsigned short*>(base) + index);
    if constexpr (kFormat == ATTEST_BF16) {  // bf16 is the upper half of an f32
      return {__uint_as_float(pair.x << 16), __uint_as_float(pair.x & 0xFFFF0000U),
              __uint_as_float(pair.y << 16), __uint_as_float(pair.y & 0xFFFF0000U)};
    } else {
      const auto half = [](uint32_t bits) {
        return __half2float(__ushort_as_half(static_cast<unsigned short>(bits)));
      };
      return {half(pair.x), half(pair.x >> 16), half(pair.y), half(pair.y >> 16)};
    }
  } else {
    const uint32_t bytes =
        *reinterpret_cast<const uint32_t*>(static_cast<const unsigned char*>(base) + index);
    const auto number = [](uint32_t bits) {
      return kFormat == ATTEST_I8     ? from_i8(bits)
             : kFormat == ATTEST_E4M3 ? from_e4m3(bits & 0xFFU)
                                      : from_e5m2(bits & 0xFFU);
    };
    return {number(bytes), number(bytes >> 8), number(bytes >> 16), number(bytes >> 24)};
  }
}

template <uint32_t kFormat>
__device__ inline float load_one(const void* base, int64_t index) {
  if constexpr (kFormat == ATTEST_F32) {
    return static_cast<const float*>(base)[index];
  } else if constexpr (kFormat == ATTEST_F16) {
    return __half2float(__ushort_as_half(static_cast<const unsigned short*>(base)[index]));
  } else if constexpr (kFormat == ATTEST_BF16) {
    return __uint_as_float(static_cast<uint32_t>(static_cast<const unsigned short*>(base)[index])
                           << 16);
  } else if constexpr (kFormat == ATTEST_E4M3) {
    return from_e4m3(static_cast<const unsigned char*>(base)[index]);
  } else if constexpr (kFormat == ATTEST_E5M2) {
    return from_e5m2(static_cast<const unsigned char*>(base)[index]);
  } else {
    return from_i8(static_cast<const unsigned char*>(base)[index]);
  }
}

/// One element of whatever format: outside of the loops that matter.
__device__ inline float load_any(uint32_t format, const void* base, int64_t index) {
  switch (format) {
    case ATTEST_F32:
      return load_one<ATTEST_F32>(base, index);
    case ATTEST_F16:
      return load_one<ATTEST_F16>(base, index);
    case ATTEST_BF16:
      return load_one<ATTEST_BF16>(base, index);
    case ATTEST_E4M3:
      return load_one<ATTEST_E4M3>(base, index);
    case ATTEST_E5M2:
      return load_one<ATTEST_E5M2>(base, index);
    default:
      return load_one<ATTEST_I8>(base, index);
  }
}

/// Up to four elements of a row that has `left` of them from here on; zeros beyond.
template <uint32_t kFormat>
__device__ inline float4 load_up_to_four(const void* base, int64_t index, int left) {
  float4 four = {0.0F, 0.0F, 0.0F, 0.0F};
  if (left > 0) four.x = load_one<kFormat>(base, index);
  if (left > 1) four.y = load_one<kFormat>(base, index + 1);
  if (left > 2) four.z = load_one<kFormat>(base, index + 2);
  if (left > 3) four.w = load_one<kFormat>(base, index + 3);
  return four;
}

/// The only rounding of an output, from f32 to its format.
__device__ inline void store_one(uint32_t format, void* base, int64_t index, float number) {
  if (format == ATTEST_F32) {
    static_cast<float*>(base)[index] = number;
  } else if (format == ATTEST_F16) {
    static_cast<unsigned short*>(base)[index] = __half_as_ushort(__float2half_rn(number));
  } else {
    static_cast<unsigned short*>(base)[index] = __bfloat16_as_ushort(__float2bfloat16_rn(number));
  }
}

/// The largest number of a format.
__host__ __device__ constexpr float largest_of(uint32_t format) {
  switch (format) {
    case ATTEST_F32:
      return FLT_MAX;
    case ATTEST_F16:
      return 65504.0F;
    case ATTEST_BF16:
      return 0x1.FEp127F;
    case ATTEST_E4M3:
      return 448.0F;
    case ATTEST_E5M2:
      return 57344.0F;
    default:
      return 127.0F;
  }
}

/// The pattern of an 8-bit float of kMantissa stored bits whose exponent is biased by kBias.
/// Domain: |number| at most the largest of the format. Error: nearest, ties to even.
/// Special: signed zeros are kept.
template <int kMantissa, int kBias>
__device__ inline uint32_t eight_bits_of(float number) {
  constexpr int kDropped = 23 - kMantissa;  // an f32 stores 23 bits
  constexpr auto kSmallestNormal = static_cast<uint32_t>(128 - kBias) << 23;   // 2^(1 - kBias)
  constexpr float kSteps = static_cast<float>(1U << (kBias - 1 + kMantissa));  // to 1
  const uint32_t bits = __float_as_uint(number);
  const uint32_t magnitude = bits & 0x7FFFFFFFU;
  uint32_t pattern;
  if (magnitude < kSmallestNormal) {  // evenly spaced; what rounds up to normal has its pattern
    pattern = __float2uint_rn(__uint_as_float(magnitude) * kSteps);
  } else {
    const uint32_t odd = (magnitude >> kDropped) & 1U;
    const uint32_t half = (1U << (kDropped - 1)) - 1U + odd;  // a tie goes up from odd numbers only
    pattern = ((magnitude + half) >> kDropped) - (static_cast<uint32_t>(127 - kBias) << kMantissa);
  }
  return pattern | ((bits >> 24) & 0x80U);
}

/// The only rounding of what goes into a cache: to nearest even; what lies beyond the largest
/// number of the format, infinity included, becomes the largest. NaN stays NaN, and is 0 in i8.
__device__ inline void store_saturating(uint32_t format, void* base, int64_t index, float number) {
  const float largest = largest_of(format);
  const bool is_nan = number != number;
  const float kept = number > largest ? largest : number < -largest ? -largest : number;
  if (format == ATTEST_F32 || format == ATTEST_F16 || format == ATTEST_BF16) {
    return store_one(format, base, index, kept);
  }
  uint32_t pattern;
  if (format == ATTEST_E4M3) {
    pattern = is_nan ? 0x7FU : eight_bits_of<3, 7>(kept);
  } else if (format == ATTEST_E5M2) {
    pattern = is_nan ? 0x7EU : eight_bits_of<2, 15>(kept);
  } else {
    pattern = is_nan ? 0U : static_cast<uint32_t>(__float2int_rn(kept));
  }
  static_cast<unsigned char*>(base)[index] = static_cast<unsigned char>(pattern);
}

}  // namespace attest::kernels
