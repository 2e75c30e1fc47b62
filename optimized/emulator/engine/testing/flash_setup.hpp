// What launches of our f32 flash attention kernel have in common, for tests and benchmarks: which
// instance, and its arguments. One head, no mask, 64 columns.
#pragma once
#include <cmath>
#include <cstdint>
#include <regex>
#include <string>
#include <vector>

#include "optimized/kernels/attention_arguments.cuh"

namespace attest::emulator {

constexpr int kFlashDepth = 64;
constexpr unsigned kFlashRows = 32;  // per block: 2 warps, 4 rows side by side, 4 rows per thread
constexpr unsigned kFlashThreads = 64;
constexpr std::uint32_t kFlashSharedBytes = 48 * 1024;

/// The mangled name of the instance for 64 columns of V: 8 lanes hold 8 columns each. Empty when
/// the PTX has none.
inline std::string flash_kernel(const std::string& ptx) {
  const std::regex entry("\\.entry ([A-Za-z0-9_]*flash_prefill[A-Za-z0-9_]*Li8E[A-Za-z0-9_]*)\\(");
  std::smatch match;
  return std::regex_search(ptx, match, entry) ? match[1] : std::string();
}

/// Self-attention of `length` rows, all in device memory.
inline kernels::AttentionArguments flash_arguments(float* q, float* k, float* v, float* o,
                                                   float* lse, int length) {
  const auto view = [&](float* data, int width) {
    kernels::View made;
    made.data = data;
    made.row = width;
    made.batch = made.head = std::int64_t(length) * width;
    made.vectors = width % 4 == 0;
    return made;
  };
  kernels::AttentionArguments a{};
  a.q = view(q, kFlashDepth), a.k = view(k, kFlashDepth);
  a.v = view(v, kFlashDepth), a.o = view(o, kFlashDepth);
  a.lse = view(lse, 1);
  a.num_heads_q = a.num_heads_kv = 1;
  a.seqlen_q = a.seqlen_kv = length;
  a.head_dim = a.head_dim_v = kFlashDepth;
  a.window_left = a.window_right = -1;
  a.softmax_scale = 1.0f / std::sqrt(float(kFlashDepth));
  a.nats_per_unit = a.softmax_scale;
  a.bits_per_unit = a.softmax_scale * kernels::kLog2E;
  return a;
}

}  // namespace attest::emulator
