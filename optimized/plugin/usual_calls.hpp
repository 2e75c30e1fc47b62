// Calls as serving engines make them, small enough for the emulator: what `attest measure --cost`
// counts and the bundle's time_kernels times, in the terms of the C ABI. Data only.
#pragma once
#include <cstdint>

#include "optimized/plugin/attest_subject.h"

namespace attest {

/// Of a projection, queries x depth is X and depth x keys is W. An append adds `queries` tokens to
/// a cache of `keys`.
struct UsualCall {
  uint32_t operation = ATTEST_PREFILL;
  int64_t batch = 1, query_heads = 1, kv_heads = 1, queries = 1, keys = 1, depth = 64;
  uint32_t format = ATTEST_BF16;  // of inputs and outputs
  bool causal = false;
  int64_t splits = 1, page_size = 0;
  uint32_t cache = ATTEST_BF16, scales = ATTEST_SCALES_NONE, rope = ATTEST_ROPE_NONE;
};

inline constexpr UsualCall kUsualCalls[] = {
    {.query_heads = 4, .kv_heads = 2, .queries = 1024, .keys = 1024, .causal = true},
    {.query_heads = 2, .queries = 1024, .keys = 1024, .depth = 128, .causal = true},
    {.query_heads = 2,
     .queries = 512,
     .keys = 512,
     .depth = 128,
     .format = ATTEST_F16,
     .cache = ATTEST_F16},
    {.queries = 256,
     .keys = 256,
     .depth = 256,
     .format = ATTEST_F16,
     .causal = true,
     .cache = ATTEST_F16},
    {.query_heads = 2,
     .queries = 256,
     .keys = 256,
     .format = ATTEST_F32,
     .causal = true,
     .cache = ATTEST_F32},
    {ATTEST_DECODE, 1, 8, 1, 1, 2048, 128, ATTEST_BF16, false, 8},
    {ATTEST_DECODE, 2, 8, 2, 1, 1024, 128, ATTEST_BF16, false, 4, 16},
    {ATTEST_DECODE, 2, 8, 2, 1, 1024, 128, ATTEST_BF16, false, 4, 16, ATTEST_E4M3,
     ATTEST_SCALES_HEAD},
    {ATTEST_APPEND, 4, 8, 8, 1, 256, 128},
    {ATTEST_APPEND, 4, 8, 8, 1, 256, 128, ATTEST_BF16, false, 1, 16, ATTEST_E4M3,
     ATTEST_SCALES_HEAD, ATTEST_ROPE_HALVES},
    {ATTEST_PROJECTION, 1, 1, 1, 512, 1024, 1024},
    {ATTEST_PROJECTION, 1, 1, 1, 128, 256, 256, ATTEST_F32, false, 1, 0, ATTEST_F32},
};

}  // namespace attest
