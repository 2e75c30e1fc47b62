// Tensor cores of compute capability 8.0 for 16-bit operands: one function per instruction, and
// what a lane holds of a matrix. Knows nothing of attention.
//
// A fragment is a lane's part of a small matrix. With group = lane / 4 and pair = lane % 4 * 2
// (PTX ISA, "Matrix Fragments for mma.m16n8k16"):
//   A (16, 16)   a[0]: row group, columns pair, pair + 1     a[1]: row group + 8
//                a[2], a[3]: the same rows, columns + 8
//   B (16, 8)    b0: rows pair, pair + 1 of column group     b1: rows + 8
//   C, D (16, 8) d[0], d[1]: row group, columns pair, pair + 1     d[2], d[3]: row group + 8
// So two neighbouring D, rounded, are one A: that is how weights reach the second product.
#pragma once
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cstdint>

#include "optimized/plugin/attest_subject.h"

namespace attest::kernels {

/// Four 8 x 8 matrices from shared memory. Lanes 8 i to 8 i + 7 give the addresses of the eight
/// rows of matrix i, 16 bytes each; r[i] is a lane's pair of matrix i: row lane / 4, columns pair.
__device__ inline void load_matrices(uint32_t (&r)[4], uint32_t row_address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(row_address)
               : "memory");
}
/// The same with every matrix transposed on the way: row pair, column lane / 4.
__device__ inline void load_matrices_transposed(uint32_t (&r)[4], uint32_t row_address) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(row_address)
               : "memory");
}

/// D += A B in f32; the operands are exact. How the 16 products and D are added is the machine's
/// own: PTX leaves order and rounding open.
template <uint32_t kFormat>
__device__ inline void multiply_add(float (&d)[4], const uint32_t (&a)[4], uint32_t b0,
                                    uint32_t b1) {
  static_assert(kFormat == ATTEST_F16 || kFormat == ATTEST_BF16);
  if constexpr (kFormat == ATTEST_F16) {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
        "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  } else {
    asm volatile(
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
        "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
  }
}

/// Two numbers rounded to nearest even, the first in the lower half.
template <uint32_t kFormat>
__device__ inline uint32_t pack(float low, float high) {
  if constexpr (kFormat == ATTEST_F16) {
    const __half2 both = __floats2half2_rn(low, high);
    return *reinterpret_cast<const uint32_t*>(&both);
  } else {
    const __nv_bfloat162 both = __floats2bfloat162_rn(low, high);
    return *reinterpret_cast<const uint32_t*>(&both);
  }
}

/// 16 bytes from global to shared memory while the thread goes on, or 16 zeros: then nothing is
/// read. Both sides are aligned to 16 bytes. Arrives with wait_for_copies().
__device__ inline void copy_or_zero(uint32_t to, const void* from, bool wanted) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
               :
               : "r"(to), "l"(__cvta_generic_to_global(from)), "r"(wanted ? 16 : 0)
               : "memory");
}
/// This thread's copies have arrived. The others' have after a barrier.
__device__ inline void wait_for_copies() {
  asm volatile("cp.async.wait_all;" ::: "memory");
}

}  // namespace attest::kernels
