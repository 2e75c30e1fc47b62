// Tensors of a call in device memory, with numbers in them that are finite in every format and
// drawn by a hash; freed together. Knows formats and shapes, not what is computed.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>
#include <initializer_list>
#include <list>
#include <numeric>
#include <vector>

#include "optimized/bundle/require.cuh"
#include "optimized/plugin/attest_subject.h"

namespace attest::bundle {

inline int bytes_of(uint32_t format) {
  return format == ATTEST_F32 ? 4 : format == ATTEST_F16 || format == ATTEST_BF16 ? 2 : 1;
}

inline DLDataType type_of(uint32_t format) {
  const auto bits = static_cast<uint8_t>(8 * bytes_of(format));
  switch (format) {
    case ATTEST_BF16:
      return {kDLBfloat, bits, 1};
    case ATTEST_E4M3:
      return {ATTEST_DL_FLOAT8_E4M3FN, bits, 1};
    case ATTEST_E5M2:
      return {ATTEST_DL_FLOAT8_E5M2, bits, 1};
    case ATTEST_I8:
      return {kDLInt, bits, 1};
    default:
      return {kDLFloat, bits, 1};
  }
}

/// Numbers of [-1, 1), or below 2 in magnitude where a format has 8 bits.
__global__ void fills(void* data, uint32_t format, size_t count, uint32_t seed) {
  const size_t step = size_t{gridDim.x} * blockDim.x;
  for (size_t i = size_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    uint32_t hash = static_cast<uint32_t>(i) * 0x9E3779B9U + seed * 0x85EBCA6BU;
    hash = (hash ^ hash >> 16) * 0x7FEB352DU;  // any mixture will do: times do not depend on it
    hash = (hash ^ hash >> 15) * 0x846CA68BU;
    const float number = static_cast<float>(static_cast<int32_t>(hash)) * 0x1p-31F;
    if (format == ATTEST_F32) {
      static_cast<float*>(data)[i] = number;
    } else if (format == ATTEST_F16) {
      static_cast<__half*>(data)[i] = __float2half(number);
    } else if (format == ATTEST_BF16) {
      static_cast<__nv_bfloat16*>(data)[i] = __float2bfloat16(number);
    } else {
      static_cast<uint8_t*>(data)[i] = hash >> 24 & 0xBFU;  // no exponent's highest bit: finite
    }
  }
}

class Tensors {
 public:
  Tensors() = default;
  Tensors(const Tensors&) = delete;
  ~Tensors() {
    for (void* each : memory_) cudaFree(each);
  }

  void* bytes(size_t count) {
    void* data = nullptr;
    require(cudaMalloc(&data, count > 0 ? count : 1), "cudaMalloc");
    memory_.push_back(data);
    return data;
  }
  DLTensor drawn(uint32_t format, std::initializer_list<int64_t> shape) {
    DLTensor tensor = placed(type_of(format), shape);
    fills<<<256, 256>>>(tensor.data, format, count_, ++seed_);
    require(cudaGetLastError(), "filling a tensor");
    return tensor;
  }
  /// Every bit set: NaN where nobody writes.
  DLTensor poisoned(uint32_t format, std::initializer_list<int64_t> shape) {
    DLTensor tensor = placed(type_of(format), shape);
    require(cudaMemset(tensor.data, 0xFF, count_ * bytes_of(format)), "cudaMemset");
    return tensor;
  }
  template <class Number>
  DLTensor of(const std::vector<Number>& numbers, DLDataTypeCode code,
              std::initializer_list<int64_t> shape) {
    static_assert(sizeof(Number) == 4);
    DLTensor tensor = placed({static_cast<uint8_t>(code), 32, 1}, shape);
    require(cudaMemcpy(tensor.data, numbers.data(), numbers.size() * sizeof(Number),
                       cudaMemcpyHostToDevice),
            "cudaMemcpy");
    return tensor;
  }

 private:
  /// Dense; count_ becomes the number of its elements.
  DLTensor placed(DLDataType type, std::initializer_list<int64_t> shape) {
    auto& extents = extents_.emplace_back(shape);
    auto& strides = extents_.emplace_back(shape.size(), 1);
    for (size_t i = shape.size() - 1; i > 0; --i) strides[i - 1] = strides[i] * extents[i];
    count_ = static_cast<size_t>(strides[0] * extents[0]);
    DLTensor tensor{};
    tensor.data = bytes(count_ * type.bits / 8);
    tensor.device = {kDLCUDA, 0};
    tensor.ndim = static_cast<int>(shape.size());
    tensor.dtype = type;
    tensor.shape = extents.data();
    tensor.strides = strides.data();
    return tensor;
  }

  std::list<std::vector<int64_t>> extents_;
  std::vector<void*> memory_;
  size_t count_ = 0;
  uint32_t seed_ = 0;
};

}  // namespace attest::bundle
