// Compiled to PTX for nvcc_output_test: one kernel per feature of the text that nvcc writes.
#include <cuda_bf16.h>

#include <cassert>
#include <cstdio>

struct Shape {
  int a;
  float b[5];
  const float* p;
};

__device__ int counter[4] = {1, 2, 3, 4};
__constant__ float table[3] = {1.5f, -2.f, 3.f};
__device__ const char* text = "hi\n";

struct Base {
  __device__ virtual float f(float x) const { return x; }
};
struct Derived : Base {
  __device__ float f(float x) const override { return x * 2; }
};
template <int N>
__device__ __noinline__ float times(float x, int i) {
  return x * N + i;
}
__device__ float (*chosen)(float, int) = times<3>;

__device__ __forceinline__ float inlined_sum(float a, float b) {
  return a * 3.0f + b;  // line of inlined_sum
}

template <typename T>
__global__ void __launch_bounds__(128, 2) everything(Shape s, T* out, int n) {
  extern __shared__ float dynamic[];
  __shared__ float fixed[64];
  const int i = threadIdx.x;
  float local[16];
  for (int k = 0; k < 16; ++k) local[(k * n) & 15] = k * s.b[k % 5];
  dynamic[i] = s.p[i] + local[i & 15];
  fixed[i & 63] = dynamic[i];
  __syncthreads();
  const float v = __shfl_xor_sync(~0u, fixed[i & 63], 1);
  if (i < n) out[i] = T(times<7>(v, i) + chosen(v, n) + table[i % 3]);
  if (n > 100) {
    printf("n %d %s", n, text);
    assert(n < 200);
  }
  Derived derived;
  const Base* base = &derived;
  if (n & 1) base = new Base;
  out[i] = T(inlined_sum(base->f(float(out[i])), v));
  asm volatile(
      "{\n .reg .pred p;\n LAB: \n setp.ne.u32 p, %0, 0; @!p bra DONE; bra LAB; DONE:\n}" ::"r"(n));
  asm volatile("{ .reg .pred %%p; setp.eq.s32 %%p|_, %0, 1; @%%p add.s32 %0, %0, -1;}" : "+r"(n));
  atomicAdd(&counter[n & 3], 1);
}
template __global__ void everything<float>(Shape, float*, int);
template __global__ void everything<__nv_bfloat16>(Shape, __nv_bfloat16*, int);

__global__ void tensor_operations(const __nv_bfloat16* a, float* d) {
  __shared__ alignas(16) __nv_bfloat16 tile[256];
  const unsigned address = static_cast<unsigned>(__cvta_generic_to_shared(tile));
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;\n" ::"r"(address), "l"(a));
  asm volatile("cp.async.commit_group;\ncp.async.wait_group 0;\n");
  unsigned r[4];
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(address));
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%4, %5}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]));
}
