// Launchers: one host function per kernel family. They put work on the given stream and report the
// status of the launch; they neither allocate nor synchronise. What is accepted is decided before,
// in kernels_plugin.cu.
#pragma once
#include <cuda_runtime.h>

#include <cstdint>

#include "optimized/plugin/attest_subject.h"

namespace attest::kernels {

/// Keys between two rescales of a row, at least: what AttestPrecision declares.
constexpr int kKeyBlock = 32;
/// The same in mma_decode, of which a warp takes so many keys of a tile.
constexpr int kMmaDecodeKeyBlock = 16;

/// The widest row of q, k or v that the kernels hold.
constexpr int kDepthLimit = 256;

cudaError_t launch_flash_prefill(const AttestAttention& attention);

/// Whether this problem's prefill is for tensor cores; and whether these tensors of it are, whose
/// rows must be aligned. What is not goes to flash_prefill, which rounds less.
bool mma_prefill_serves(const AttestProblem& problem);
bool mma_prefill_takes(const AttestAttention& attention);
/// Keys of its tiles, which share a running maximum.
int mma_prefill_keys(const AttestProblem& problem);
cudaError_t launch_mma_prefill(const AttestAttention& attention);

/// Floats of scratch for launch_split_keys.
int64_t split_keys_scratch_floats(const AttestProblem& problem);
cudaError_t launch_split_keys(const AttestAttention& attention);

/// Whether this problem's decode is for tensor cores; and whether these tensors of it are. Then
/// launch_split_keys leaves the parts to launch_mma_decode and combines them.
bool mma_decode_serves(const AttestProblem& problem);
bool mma_decode_takes(const AttestAttention& attention);
/// Warps among which it deals the keys of a tile, each with a running maximum of its own.
int mma_decode_warps(const AttestProblem& problem);
cudaError_t launch_mma_decode(const AttestAttention& attention);

cudaError_t launch_cache_append(const AttestAppend& append);
cudaError_t launch_page_copy(const AttestPageCopy& copy);

/// By tensor cores where they suit.
cudaError_t launch_projection(const AttestProjection& projection);
cudaError_t launch_mma_projection(const AttestProjection& projection);

/// Blocks that a launch would need; more than 2^31 - 1 cannot be launched.
int64_t flash_prefill_blocks(const AttestProblem& problem);
int64_t split_keys_blocks(const AttestProblem& problem);

}  // namespace attest::kernels
