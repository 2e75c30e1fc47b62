// kernels_plugin: our kernels as a subject, through the same C ABI as anybody's. Says what is
// accepted, how it rounds and which kernel serves which operation. Computes nothing.
#include <cstdio>

#include "optimized/kernels/launchers.hpp"
#include "optimized/plugin/attest_subject.h"

namespace attest::kernels {
namespace {

// Grids have one dimension of at most 2^31 - 1 blocks, and rows are numbered with 31 bits, with
// room for one more tile behind the last.
constexpr int64_t kBlockLimit = INT32_MAX;
constexpr int64_t kRowLimit = INT64_C(1) << 30;

char last_message[256] = "";
const char* last_error() {
  return last_message;
}

int32_t outcome(const char* operation, cudaError_t status) {
  if (status == cudaSuccess) {
    return 0;
  }
  std::snprintf(last_message, sizeof last_message, "%s: %s", operation, cudaGetErrorString(status));
  return 1;
}

const char* declines_attention(const AttestProblem& problem) {
  if (problem.head_dim < 1 || problem.head_dim > kDepthLimit || problem.head_dim_v < 1 ||
      problem.head_dim_v > kDepthLimit) {
    return "head_dim and head_dim_v must lie between 1 and 256";
  }
  if (problem.output != ATTEST_F32 && problem.output != ATTEST_F16 &&
      problem.output != ATTEST_BF16) {
    return "outputs are f32, f16 or bf16";
  }
  if (problem.cache > ATTEST_I8) {
    return "caches are f32, f16, bf16, e4m3, e5m2 or i8";
  }
  if (problem.seqlen_q > kRowLimit || problem.seqlen_kv > kRowLimit ||
      problem.num_splits > kRowLimit) {
    return "queries, keys and splits must not exceed 2^30";
  }
  return nullptr;
}

const char* declines(uint32_t operation, const AttestProblem* problem) {
  if (problem->input > ATTEST_E5M2) {
    return "inputs are f32, f16, bf16, e4m3 or e5m2";
  }
  const char* reason = nullptr;
  switch (operation) {
    case ATTEST_PREFILL:
      reason = declines_attention(*problem);
      if (problem->cache != problem->input || problem->scales != ATTEST_SCALES_NONE ||
          problem->page_size > 0 || problem->ring > 0) {
        reason =
            "prefill takes k and v as they are; decode takes what is quantised, paged or a ring";
      }
      if (reason == nullptr && flash_prefill_blocks(*problem) > kBlockLimit) {
        reason = "more tiles of queries than a grid can have blocks";
      }
      return reason;
    case ATTEST_DECODE:
      reason = declines_attention(*problem);
      if (reason == nullptr && split_keys_blocks(*problem) > kBlockLimit) {
        reason = "more parts than a grid can have blocks";
      }
      return reason;
    case ATTEST_APPEND:
    case ATTEST_COPY_PAGES:
      return problem->cache > ATTEST_I8 ? "caches are f32, f16, bf16, e4m3, e5m2 or i8" : nullptr;
    case ATTEST_PROJECTION:
      return problem->output > ATTEST_BF16 ? "outputs are f32, f16 or bf16" : nullptr;
    default:
      return "unknown operation";
  }
}

int64_t scratch_bytes(uint32_t operation, const AttestProblem* problem) {
  return operation == ATTEST_DECODE
             ? split_keys_scratch_floats(*problem) * static_cast<int64_t>(sizeof(float))
             : 0;
}

int32_t prefill(const AttestAttention* attention) {
  return mma_prefill_takes(*attention) ? outcome("mma_prefill", launch_mma_prefill(*attention))
                                       : outcome("flash_prefill", launch_flash_prefill(*attention));
}
int32_t decode(const AttestAttention* attention) {
  return outcome("split_keys", launch_split_keys(*attention));
}
int32_t append(const AttestAppend* request) {
  return outcome("cache_append", launch_cache_append(*request));
}
int32_t copy_pages(const AttestPageCopy* request) {
  return outcome("page_copy", launch_page_copy(*request));
}
int32_t project(const AttestProjection* request) {
  return outcome("projection", launch_projection(*request));
}

// How we round, compiled by nvcc's defaults (no --use_fast_math: -ftz=false -prec-div=true
// -prec-sqrt=true -fmad=true). "2 ulp" of a library function means 2 ulp from the correctly rounded
// result, 2.5 ulp from the true one, and an ulp is at most 2 u = 2^-23 of the number.
constexpr double kUnitRoundoff = 0x1p-24;
constexpr AttestPrecision kPrecision = {
    .abi_version = ATTEST_ABI_VERSION,
    .struct_bytes = sizeof(AttestPrecision),
    .p_format = ATTEST_F32,
    .keys_per_rescale = kKeyBlock,
    // exp2f, which is one ex2.approx.f32: 2 ulp (CUDA C++ Programming Guide; PTX ISA, ex2).
    .exp_error = 5 * kUnitRoundoff,
    // logf and log2f: 1 ulp (CUDA C++ Programming Guide), 1.5 ulp from the truth. A sum of weights
    // is below 2^32 keys, its logarithm below 32 in either base, where an ulp is at most 2^-19.
    .log_error = 1.5 * 0x1p-19,
    // tanhf: 2 ulp (CUDA C++ Programming Guide).
    .tanh_error = 5 * kUnitRoundoff,
    // O is divided by l with an IEEE division.
    .division_error = 0,
    .tensor_step = 0,
    .kv_block = kKeyBlock,
    .in_order = 1,
};

// Whatever attest lays out is aligned as mma_prefill and mma_decode want it, and a caller whose
// rows are not must not rely on this: flash_prefill and split_keys then take over and do not round
// P.
void prefill_precision(const AttestProblem& problem, AttestPrecision& precision) {
  precision.split_size = kRowLimit;  // all keys: prefill has no parts, however many are asked for
  precision.partial_row_sums = 8;
  if (mma_prefill_serves(problem)) {
    precision.p_format = problem.input;
    precision.tensor_step = 8;
    precision.kv_block = mma_prefill_keys(problem);
    precision.partial_row_sums = 4;
  }
}

void decode_precision(const AttestProblem& problem, AttestPrecision& precision) {
  precision.split_size = ATTEST_SPLIT_SIZE_POWER_OF_TWO;
  precision.v_scale_in_p = 1;
  precision.partial_row_sums = 32;
  if (mma_decode_serves(problem)) {
    precision.p_format = problem.input;
    precision.tensor_step = 8;
    precision.keys_per_rescale = precision.kv_block = kMmaDecodeKeyBlock;
    precision.interleaved_accumulators = mma_decode_warps(problem);
    precision.partial_row_sums = 4;
  }
}

void precision_for(uint32_t operation, const AttestProblem* problem, AttestPrecision* precision) {
  if (operation == ATTEST_PREFILL) {
    prefill_precision(*problem, *precision);
  }
  if (operation == ATTEST_DECODE) {
    decode_precision(*problem, *precision);
  }
  // Where mma_projection does not suit, projection adds in f32, which errs less than this allows.
  if (operation == ATTEST_PROJECTION &&
      (problem->input == ATTEST_F16 || problem->input == ATTEST_BF16)) {
    precision->tensor_step = 8;
  }
}

}  // namespace
}  // namespace attest::kernels

extern "C" __attribute__((visibility("default"))) const AttestSubject* attest_subject(
    uint32_t abi_version) {
  namespace kernels = attest::kernels;
  static const AttestSubject subject = {
      .abi_version = ATTEST_ABI_VERSION,
      .struct_bytes = sizeof(AttestSubject),
      .name =
          "attest kernels: mma_prefill, flash_prefill, mma_decode, split_keys, cache_append, "
          "page_copy, mma_projection, projection",
      .device_type = kDLCUDA,
      .promises = ATTEST_DETERMINISTIC | ATTEST_BATCH_INVARIANT,
      .precision = kernels::kPrecision,
      .declines = kernels::declines,
      .scratch_bytes = kernels::scratch_bytes,
      .last_error = kernels::last_error,
      .prefill = kernels::prefill,
      .decode = kernels::decode,
      .append = kernels::append,
      .projection = kernels::project,
      .precision_for = kernels::precision_for,
      .copy_pages = kernels::copy_pages,
  };
  return abi_version == ATTEST_ABI_VERSION ? &subject : nullptr;
}
