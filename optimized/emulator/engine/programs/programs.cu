// What execution_test.cpp runs: ordinary CUDA, compiled by nvcc to PTX when the tests are built.
#include <cassert>
#include <cstdint>
#include <cstdio>

#define KERNEL extern "C" __global__ void

KERNEL vector_add(const float* a, const float* b, float* c, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}

// Sum of a block by shuffles, then of the warps through shared memory.
KERNEL block_sum(const int* in, int* out) {
  __shared__ int partial[32];
  int v = in[blockIdx.x * blockDim.x + threadIdx.x];
  for (int d = 16; d > 0; d /= 2) v += __shfl_down_sync(~0u, v, d);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = v;
  __syncthreads();
  if (threadIdx.x < 32) {
    v = threadIdx.x < blockDim.x / 32 ? partial[threadIdx.x] : 0;
    for (int d = 16; d > 0; d /= 2) v += __shfl_xor_sync(~0u, v, d);
    if (threadIdx.x == 0) out[blockIdx.x] = v;
  }
}

KERNEL matmul(const float* a, const float* b, float* c, int n) {
  __shared__ float ta[16][16], tb[16][17];
  const int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
  float sum = 0;
  for (int t = 0; t < n; t += 16) {
    ta[threadIdx.y][threadIdx.x] = a[y * n + t + threadIdx.x];
    tb[threadIdx.y][threadIdx.x] = b[(t + threadIdx.y) * n + x];
    __syncthreads();
    for (int k = 0; k < 16; ++k) sum = fmaf(ta[threadIdx.y][k], tb[k][threadIdx.x], sum);
    __syncthreads();
  }
  c[y * n + x] = sum;
}

// Results side by side: expf, logf, exp2f, sinf, cosf, tanhf, sqrtf, 1/x, rsqrtf, powf, erff,
// log2f.
KERNEL math(const float* in, float* out, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float x = in[i], p = fabsf(x);
  float* o = out + i * 12;
  o[0] = expf(x), o[1] = logf(p), o[2] = exp2f(x), o[3] = sinf(x), o[4] = cosf(x), o[5] = tanhf(x);
  o[6] = sqrtf(p), o[7] = 1 / x, o[8] = rsqrtf(p), o[9] = powf(p, 0.3f), o[10] = erff(x),
  o[11] = log2f(p);
}

KERNEL collatz(int* out) {
  unsigned n = blockIdx.x * blockDim.x + threadIdx.x + 1;
  int steps = 0;
  while (n != 1) {
    n = n % 2 ? 3 * n + 1 : n / 2;
    ++steps;
  }
  out[blockIdx.x * blockDim.x + threadIdx.x] = steps;
}

// Nested branches, loops of different lengths, early exit, a switch.
KERNEL diverge(int* out, int n) {
  const int t = threadIdx.x;
  if (t >= n) return;
  int r = 0;
  for (int i = 0; i < t; ++i) {
    if (i % 3 == 0) {
      if (t % 2)
        r += i;
      else
        r -= i;
      if (r > 100) break;
      continue;
    }
    switch ((i + t) % 5) {
      case 0:
        r += 7;
        break;
      case 1:
        r ^= t;
        break;
      case 2:
        r = r * 3 + 1;
        break;
      case 3:
        r -= 11;
        break;
      default:
        r += i & t;
    }
  }
  out[t] = r;
}

__device__ __noinline__ int fibonacci(int n) {
  return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2);
}
KERNEL recursion(int* out) {
  out[threadIdx.x] = fibonacci(threadIdx.x % 12);
}

__device__ __noinline__ int twice(int x) {
  return 2 * x;
}
__device__ __noinline__ int square(int x) {
  return x * x;
}
__device__ __noinline__ int shuffle_inside(int x) {
  return x + __shfl_xor_sync(__activemask(), x, 1);
}
typedef int (*Function)(int);
__device__ Function table[3] = {twice, square, shuffle_inside};
KERNEL indirect(int* out) {
  out[threadIdx.x] = table[threadIdx.x / 2 % 3](threadIdx.x);
}

struct Base {
  __device__ virtual int value(int x) const = 0;
};
struct Plus : Base {
  int n;
  __device__ Plus(int m) : n(m) {}
  __device__ int value(int x) const override { return x + n; }
};
struct Times : Base {
  int n;
  __device__ Times(int m) : n(m) {}
  __device__ int value(int x) const override { return x * n; }
};
KERNEL virtual_calls(int* out) {
  Plus plus(5);
  Times times(7);
  const Base* b = threadIdx.x % 2 ? static_cast<const Base*>(&plus) : &times;
  out[threadIdx.x] = b->value(threadIdx.x);
}

struct Big {
  int a[10];
  double d;
};
__device__ __noinline__ Big rotate(Big b, int by) {
  Big r = b;
  for (int i = 0; i < 10; ++i) r.a[(i + by) % 10] = b.a[i];
  r.d = b.d * by;
  return r;
}
KERNEL structs(Big b, double* out) {
  const Big r = rotate(b, threadIdx.x % 10);
  out[threadIdx.x] = r.a[3] + r.d;
}

KERNEL local_array(const int* order, int* out) {
  int data[64];
  for (int i = 0; i < 64; ++i) data[order[i]] = i * int(threadIdx.x + 1);
  int sum = 0;
  for (int i = 0; i < 64; ++i) sum = sum * 31 + data[i];
  out[threadIdx.x] = sum;
}

KERNEL atomics(unsigned* u, float* f, unsigned long long* l, int* s, double* d) {
  const unsigned t = blockIdx.x * blockDim.x + threadIdx.x;
  atomicAdd(u, t);
  atomicMax(u + 1, t * 7 % 1000);
  atomicMin(u + 2, 5000 - t);
  atomicOr(u + 3, 1u << (t % 32));
  atomicAnd(u + 4, ~(1u << (t % 16)));
  atomicXor(u + 5, t);
  atomicInc(u + 6, 9);
  atomicDec(u + 7, 9);
  atomicAdd(f, 1.0f);
  atomicAdd(l, 1ull << 33);
  atomicMin(s, -int(t));
  atomicAdd(d, 0.5);
  unsigned old = u[8], seen;
  do {
    seen = old;
    old = atomicCAS(u + 8, seen, seen + 3);
  } while (old != seen);
  __shared__ unsigned count;
  if (threadIdx.x == 0) count = 0;
  __syncthreads();
  atomicAdd(&count, 1);
  __syncthreads();
  if (threadIdx.x == 0) atomicExch(u + 9, count);
}

KERNEL warp_operations(unsigned* out) {
  const unsigned t = threadIdx.x;
  unsigned* o = out + t * 12;
  o[0] = __ballot_sync(~0u, t % 3 == 0);
  o[1] = __any_sync(~0u, t == 40) + 2 * __all_sync(~0u, t < 64);
  o[2] = __match_any_sync(~0u, t / 5);
  int all = 0;
  o[3] = __match_all_sync(~0u, t / 32, &all) + all;
  o[4] = __reduce_add_sync(~0u, t) + __reduce_max_sync(~0u, t) + __reduce_xor_sync(~0u, t);
  o[5] = __shfl_sync(~0u, t, 5, 8) + 100 * __shfl_up_sync(~0u, t, 3) +
         10000 * __shfl_down_sync(~0u, t, 2, 16);
  if (t % 2)
    o[6] = __activemask() & 0xffffu;
  else
    o[6] = __popc(__ballot_sync(0x55555555u, t % 4 == 0));
  o[7] = __syncthreads_count(t % 5 == 0);
  o[8] = __syncthreads_or(t == 63) + 2 * __syncthreads_and(t < 63);
  o[9] = __reduce_min_sync(t % 2 ? 0xaaaaaaaau : 0x55555555u, int(t) - 40);
  __syncwarp();
  o[10] = __shfl_xor_sync(~0u, t, 9) + __clz(t) + __brev(t) + __ffs(t);
  o[11] = __byte_perm(t, 0x01020304, 0x4051) + __funnelshift_l(t, t * 77, 7);
}

// Producer and consumer warps over two named barriers.
KERNEL named_barriers(int* out) {
  __shared__ int box;
  const int warp = threadIdx.x / 32;
  int sum = 0;
  for (int i = 0; i < 10; ++i) {
    if (warp == 0) {
      if (threadIdx.x == 0) box = i * i;
      asm volatile("bar.arrive 1, 64;" ::: "memory");
      asm volatile("bar.sync 2, 64;" ::: "memory");
    } else {
      asm volatile("bar.sync 1, 64;" ::: "memory");
      sum += box;
      asm volatile("bar.arrive 2, 64;" ::: "memory");
    }
  }
  out[threadIdx.x] = sum;
}

// A lock that lanes of one warp take in turn: starves without independent thread scheduling.
KERNEL spin_lock(int* lock, int* count) {
  bool done = false;
  while (!done) {
    if (atomicCAS(lock, 0, 1) == 0) {
      *(volatile int*)count = *(volatile int*)count + 1;
      __threadfence();
      atomicExch(lock, 0);
      done = true;
    }
  }
}
KERNEL spin_forever_for_other_lane(volatile int* flag, int* out) {
  if (threadIdx.x == 31) {
    *flag = 1;
  } else {
    while (*flag == 0) {
    }
  }
  out[threadIdx.x] = 1;
}

// A barrier over the whole grid by hand: every block must be resident.
KERNEL grid_barrier(volatile unsigned* arrived, int* values, int* out) {
  if (threadIdx.x == 0) values[blockIdx.x] = blockIdx.x + 1;
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    atomicAdd((unsigned*)arrived, 1);
    while (*arrived < gridDim.x) {
    }
  }
  __syncthreads();
  int sum = 0;
  for (unsigned i = 0; i < gridDim.x; ++i) sum += ((volatile int*)values)[i];
  out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

KERNEL says(int n, const char* word) {
  if (threadIdx.x < 2)
    printf("block %d thread %d: %5.2f %s %llx %c%%\n", blockIdx.x, threadIdx.x, 1.5 * n, word,
           0x123456789abcull, 'z');
}
KERNEL floods(int n) {
  for (int i = 0; i < n; ++i) printf("%0100d\n", i);
}

__constant__ float coefficients[4] = {1, 2, 3, 4};
__device__ int counter = 41;
__device__ int* pointer_to_counter = &counter;
KERNEL variables(float* out) {
  if (threadIdx.x == 0) *pointer_to_counter += 1;
  out[threadIdx.x] = coefficients[threadIdx.x % 4];
}

KERNEL dynamic_shared(int* out) {
  extern __shared__ int room[];
  __shared__ int fixed[8];
  if (threadIdx.x < 8) fixed[threadIdx.x] = 1000;
  room[threadIdx.x] = threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = room[blockDim.x - 1 - threadIdx.x] + fixed[threadIdx.x % 8];
}

KERNEL wide_arithmetic(const uint64_t* a, uint64_t* out) {
  const unsigned __int128 p =
      (unsigned __int128)a[threadIdx.x] * a[threadIdx.x + 1] + a[threadIdx.x];
  out[2 * threadIdx.x] = uint64_t(p);
  out[2 * threadIdx.x + 1] = uint64_t(p >> 64);
}

// --- programs that end badly; the comment names the line for the test ---
KERNEL reads_past_end(const float* a, float* out, int n) {
  out[threadIdx.x] = a[threadIdx.x + (threadIdx.x == 7 ? n : 0)];  // LINE reads_past_end
}
KERNEL writes_before(float* a) {
  a[-1] = 1;  // LINE writes_before
}
KERNEL misaligned(char* a) {
  *reinterpret_cast<float*>(a + 2 + threadIdx.x * 4) = 1;  // LINE misaligned
}
KERNEL reads_null(const int* a, int* out) {
  out[0] = *a;  // LINE reads_null
}
KERNEL shared_overflow(int* out, int at) {
  extern __shared__ int room[];
  room[at + threadIdx.x] = 1;  // LINE shared_overflow
  out[threadIdx.x] = room[0];
}
KERNEL local_overflow(int* out, int at) {
  int data[16];
  for (int i = 0; i < 16; ++i) data[i] = out[i];
  data[at] = 5;  // LINE local_overflow
  out[threadIdx.x] = data[at / 3];
}
KERNEL asserts(int n) {
  assert(threadIdx.x < n);  // LINE asserts
}
KERNEL traps() {
  if (threadIdx.x == 3) __trap();  // LINE traps
}
KERNEL divergent_barrier(int* out) {
  if (threadIdx.x < 16) {
    __syncthreads();  // LINE divergent_barrier
    out[0] = 1;
  } else {
    __syncthreads();
    out[1] = 1;
  }
}
KERNEL waits_for_nobody(int* out) {
  if (threadIdx.x < 32) asm volatile("bar.sync 3, 64;" ::: "memory");  // LINE waits_for_nobody
  out[threadIdx.x] = 1;
}
KERNEL lane_missing(int* out) {
  if (threadIdx.x % 2) {
    out[threadIdx.x] = __shfl_sync(0x55555555u, threadIdx.x, 0);  // LINE lane_missing
  }
}
KERNEL loops(volatile int* flag) {
  while (*flag == 0) {
  }
}
__device__ __noinline__ int deeper(int n, volatile int* p) {
  return *p ? n : deeper(n + 1, p) + *p;
}
KERNEL recurses(volatile int* p, int* out) {
  out[0] = deeper(0, p);
}
KERNEL unsupported(float* out) {
  asm volatile("multimem.red.release.sys.global.add.u32 [%0], 1;" ::"l"(out));  // LINE unsupported
  out[0] = 1;
}
KERNEL unsupported_elsewhere(float* out, int n) {
  if (n == 12345) asm volatile("multimem.red.release.sys.global.add.u32 [%0], 1;" ::"l"(out));
  out[0] = 1;
}
KERNEL generic_access(int* out, int which) {
  __shared__ int s[32];
  int local[4] = {1, 2, 3, 4};
  s[threadIdx.x] = threadIdx.x;
  __syncthreads();
  int* p = which == 0 ? out : which == 1 ? s : local;
  const int i = which == 2 ? threadIdx.x % 4 : threadIdx.x;
  p[i] += 100;
  __syncthreads();
  out[threadIdx.x] = which == 1   ? s[31 - threadIdx.x]
                     : which == 2 ? local[threadIdx.x % 4]
                                  : out[threadIdx.x];
}

// Lanes 4 to 15 of 20 ask lanes that have ended; lanes 8 to 15 of the full warp ask lanes outside
// their own mask. CUDA leaves both values undefined.
KERNEL shuffles_from_absent_lanes(unsigned* ended, unsigned* unnamed) {
  const unsigned t = threadIdx.x;
  const unsigned half = t < 16 ? 0x0000ffffu : 0xffff0000u;
  unnamed[t] = __shfl_down_sync(half, t, 8);
  if (t >= 20) return;
  ended[t] = __shfl_down_sync(0x000fffffu, t, 16);
}
