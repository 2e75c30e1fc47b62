// Calls as serving engines make them, small enough for the emulator: what `attest measure --cost`
// counts and the bundle's time_kernels times, in the terms of the C ABI. Data only.
#pragma once
#include <cstdint>

#include "optimized/plugin/attest_subject.h"

namespace attest {

/// Of a projection, queries x head_dim is X and head_dim x keys is W. An append adds `queries`
/// tokens to a cache of `keys`.
struct UsualCall {
  uint32_t operation = ATTEST_PREFILL;
  int64_t batch = 1, num_heads_q = 1, num_heads_kv = 1, seqlen_q = 1, seqlen_kv = 1, head_dim = 64;
  uint32_t format = ATTEST_BF16;  // of inputs and outputs
  bool causal = false;
  int64_t num_splits = 1, page_size = 0;
  uint32_t cache = ATTEST_BF16, scales = ATTEST_SCALES_NONE, rope = ATTEST_ROPE_NONE;
};

inline constexpr UsualCall kUsualCalls[] = {
    {.num_heads_q = 4, .num_heads_kv = 2, .seqlen_q = 1024, .seqlen_kv = 1024, .causal = true},
    {.num_heads_q = 2, .seqlen_q = 1024, .seqlen_kv = 1024, .head_dim = 128, .causal = true},
    {.num_heads_q = 2,
     .seqlen_q = 512,
     .seqlen_kv = 512,
     .head_dim = 128,
     .format = ATTEST_F16,
     .cache = ATTEST_F16},
    {.seqlen_q = 256,
     .seqlen_kv = 256,
     .head_dim = 256,
     .format = ATTEST_F16,
     .causal = true,
     .cache = ATTEST_F16},
    {.num_heads_q = 2,
     .seqlen_q = 256,
     .seqlen_kv = 256,
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
