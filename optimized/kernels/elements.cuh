// Elements: reading f32, f16, bf16, e4m3 and e5m2 as f32 (always exact), and rounding f32 to an
// output format (to nearest even, overflow to infinity). Knows no tensor and no algorithm.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>

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
      return kFormat == ATTEST_E4M3 ? from_e4m3(bits & 0xFFU) : from_e5m2(bits & 0xFFU);
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
  } else {
    return from_e5m2(static_cast<const unsigned char*>(base)[index]);
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

}  // namespace attest::kernels
