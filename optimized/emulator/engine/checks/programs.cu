// What checks_test.cpp runs: each mistake that initcheck or racecheck is there to find; and for
// silence_test.cpp programs that look alike and are right.
#include <cstdint>

#define KERNEL extern "C" __global__ void

// --- mistakes: the line with the comment is the one that the finding names ---

KERNEL reads_before_barrier(const int* in, int* out) {
  __shared__ int s[64];
  s[threadIdx.x] = in[threadIdx.x];               // LINE writes_without_barrier
  out[threadIdx.x] = s[(threadIdx.x + 40) % 64];  // LINE reads_before_barrier
}

KERNEL overwrites_before_barrier(const int* in, int* out) {
  __shared__ int s[64];
  s[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  const int v = s[63 - threadIdx.x];  // LINE reads_without_barrier
  s[threadIdx.x] = v + 1;             // LINE overwrites_before_barrier
  __syncthreads();
  out[threadIdx.x] = s[threadIdx.x];
}

KERNEL reads_before_syncwarp(const int* in, int* out) {
  __shared__ int s[32];
  s[threadIdx.x] = in[threadIdx.x];
  out[threadIdx.x] = s[threadIdx.x ^ 1];  // LINE reads_before_syncwarp
}

KERNEL counts_before_barrier(int* out) {
  __shared__ int s[16];
  if (threadIdx.x < 16) s[threadIdx.x] = 0;  // LINE clears_without_barrier
  atomicAdd(&s[threadIdx.x % 16], 1);
  __syncthreads();
  if (threadIdx.x < 16) out[threadIdx.x] = s[threadIdx.x];
}

KERNEL counts_before_anybody_cleared(int* out) {
  if (blockIdx.x == 0 && threadIdx.x < 16) out[threadIdx.x] = 0;  // LINE clears_for_others
  atomicAdd(&out[threadIdx.x % 16], 1);
}

KERNEL overwrites_before_syncwarp(const int* in, int* out) {
  __shared__ int s[32];
  s[threadIdx.x] = in[threadIdx.x];
  __syncwarp();
  const int v = s[threadIdx.x ^ 1];
  s[threadIdx.x] = v + 1;  // LINE overwrites_before_syncwarp
  __syncwarp();
  out[threadIdx.x] = s[threadIdx.x];
}

// Lanes 0 to 15 do not wait for lanes 16 to 31.
KERNEL syncs_half_a_warp(const int* in, int* out) {
  __shared__ int s[32];
  s[threadIdx.x] = in[threadIdx.x];
  __syncwarp(threadIdx.x < 16 ? 0xffff : 0xffff0000);
  out[threadIdx.x] = s[threadIdx.x ^ 16];  // LINE syncs_half_a_warp
}

KERNEL lanes_disagree(const int* in, int* out) {
  __shared__ int s;
  if (threadIdx.x < 3) s = in[threadIdx.x];  // LINE lanes_disagree
  __syncthreads();
  out[threadIdx.x] = s;
}

KERNEL warps_disagree(const int* in, int* out) {
  __shared__ int s[32];
  s[threadIdx.x % 32] = in[threadIdx.x];  // LINE warps_disagree
  __syncthreads();
  out[threadIdx.x] = s[threadIdx.x % 32];
}

KERNEL shared_never_written(const float* in, float* out) {
  __shared__ float s[64];
  if (threadIdx.x < 48) s[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = s[63 - threadIdx.x] * 2;  // LINE shared_never_written
}

KERNEL half_a_word_written(const uint16_t* in, uint32_t* out) {
  __shared__ alignas(4) uint16_t s[64];
  s[2 * threadIdx.x] = in[threadIdx.x];
  __syncwarp();
  const uint32_t word = *reinterpret_cast<uint32_t*>(&s[2 * threadIdx.x]);  // LINE half_a_word
  out[threadIdx.x] = word + 1;
}

KERNEL uninitialised_global(const float* in, float* out) {
  out[threadIdx.x] = in[threadIdx.x] + 1;  // LINE uninitialised_global
}

KERNEL uninitialised_local(const int* in, int* out) {
  int a[16];
  for (int i = 0; i < 15; ++i) a[(in[i] + threadIdx.x) % 16] = i;
  int sum = 0;
  for (int i = 0; i < 16; ++i) sum += a[(in[i] + 1) % 16];  // LINE uninitialised_local
  out[threadIdx.x] = sum;
}

// Values that nothing defines, and what becomes of them.
KERNEL branches_on_nothing(const int* in, int* out) {
  const int v = in[threadIdx.x];  // LINE branches_on_nothing
  if (v % 2 == 0) out[threadIdx.x] = 5;
}
KERNEL points_with_nothing(const int* in, int* out) {
  atomicAdd(&out[in[threadIdx.x] & 31], 1);  // LINE points_with_nothing
}
KERNEL spills_nothing(const int* in, int* out) {
  __shared__ int s[32];
  s[threadIdx.x] = in[threadIdx.x] * 3 + 1;
  __syncwarp();
  out[threadIdx.x] = s[threadIdx.x ^ 1] + 1;  // LINE spills_nothing
}
template <bool kDrops>
__device__ void sum_of_some(const int* in, int* out, int count) {
  if (threadIdx.x >= count) return;
  int v = in[threadIdx.x];
  for (int d = 16; d > 0; d /= 2) {
    const int other = __shfl_down_sync(0xffffffff, v, d);  // LINE sum_of_some
    if (!kDrops || threadIdx.x + d < count) v += other;
  }
  if (threadIdx.x == 0) *out = v;
}
KERNEL sum_with_exited_lanes(const int* in, int* out, int count) {
  sum_of_some<false>(in, out, count);
}
KERNEL asks_outside_the_mask(int* out) {
  const unsigned mask = threadIdx.x < 16 ? 0xffff : 0xffff0000;
  out[threadIdx.x] = __shfl_sync(mask, threadIdx.x, 3);  // LINE asks_outside
}

KERNEL uninitialised_counter(unsigned* counter) {
  atomicAdd(counter, 1u);
}

KERNEL blocks_write_one_place(int* out) {
  if (threadIdx.x == 5) out[0] = blockIdx.x;  // LINE blocks_write_one_place
}

KERNEL reads_other_block(int* a, int* out) {
  a[blockIdx.x * 32 + threadIdx.x] = threadIdx.x;  // LINE writes_for_other_block
  out[blockIdx.x * 32 + threadIdx.x] = a[(blockIdx.x ^ 1) * 32 + threadIdx.x];  // LINE reads_other
}

KERNEL missing_barrier_in_global(int* a, int* out) {
  a[threadIdx.x] = threadIdx.x;
  out[threadIdx.x] = a[63 - threadIdx.x];  // LINE missing_barrier_in_global
}

template <int kFence>
__device__ void last_block(const int* in, volatile int* partial, unsigned* done, int* out) {
  __shared__ bool last;
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = in[blockIdx.x] * 2;
    if (kFence == 1) __threadfence_block();
    if (kFence == 2) __threadfence();
    last = atomicAdd(done, 1u) == gridDim.x - 1;
  }
  __syncthreads();
  if (last && threadIdx.x == 1) {
    const int* plain = const_cast<const int*>(partial);
    int sum = 0;
    for (unsigned i = 0; i < gridDim.x; ++i) sum += plain[i];  // LINE last_block
    *out = sum;
  }
}
KERNEL last_block_without_fence(const int* in, int* partial, unsigned* done, int* out) {
  last_block<0>(in, partial, done, out);
}
KERNEL last_block_with_block_fence(const int* in, int* partial, unsigned* done, int* out) {
  last_block<1>(in, partial, done, out);
}
KERNEL last_block_done(const int* in, int* partial, unsigned* done, int* out) {
  last_block<2>(in, partial, done, out);
}

template <bool kVolatile, bool kAcquire, bool kRelease = true>
__device__ void hand_over(int* data, int* flag, int* out) {
  if (blockIdx.x == 0) {
    data[threadIdx.x] = threadIdx.x + 7;
    __syncthreads();
    if (threadIdx.x == 0) {
      if (kRelease) __threadfence();
      if (kVolatile)
        *static_cast<volatile int*>(flag) = 1;
      else
        *flag = 1;  // LINE plain_flag
    }
    return;
  }
  if (threadIdx.x == 0) {
    while (*static_cast<volatile int*>(flag) == 0) {  // LINE polls_plain_flag
    }
    if (kAcquire) __threadfence();
    out[32] = data[0];  // LINE without_acquire
  }
  __syncthreads();
  out[threadIdx.x] = data[threadIdx.x];
}
KERNEL plain_flag(int* data, int* flag, int* out) {
  hand_over<false, true>(data, flag, out);
}
KERNEL flag_without_acquire(int* data, int* flag, int* out) {
  hand_over<true, false>(data, flag, out);
}
KERNEL flag_without_release(int* data, int* flag, int* out) {
  hand_over<true, true, false>(data, flag, out);
}
// Within a block as well: a volatile flag tells of itself, and of nothing that was written before.
KERNEL flag_between_warps(const int* in, int* out) {
  __shared__ int data[32];
  __shared__ volatile int flag;
  if (threadIdx.x == 0) flag = 0;
  __syncthreads();
  if (threadIdx.x < 32) {
    data[threadIdx.x] = in[threadIdx.x];
    __syncwarp();
    if (threadIdx.x == 0) flag = 1;
  } else {
    while (flag == 0) {
    }
    out[threadIdx.x - 32] = data[threadIdx.x - 32];  // LINE flag_between_warps
  }
}
KERNEL flag_with_fences(int* data, int* flag, int* out) {
  hand_over<true, true>(data, flag, out);
}

KERNEL atomics_of_one_block(unsigned* count) {
  atomicAdd_block(count, 1u);
}

KERNEL reads_what_others_count(unsigned* count, unsigned* out) {
  atomicAdd(count, 1u);
  if (threadIdx.x == 40) out[0] = *count;  // LINE reads_what_others_count
}

__device__ void arrive(int barrier, int count) {
  asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "r"(count) : "memory");
}
__device__ void wait(int barrier, int count) {
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(count) : "memory");
}

// Warp 0 produces, warps 1 and 2 consume. kWrong: warp 2 waits at a barrier that the producer does
// not come to.
template <bool kWrong>
__device__ void produce(const int* in, int* out, int rounds) {
  __shared__ int s[2][32];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  int sum = 0;
  for (int r = 0; r < rounds; ++r) {
    const int stage = r % 2, full = 1 + stage, empty = 3 + stage;
    if (warp == 0) {
      if (r >= 2) wait(empty, 96);
      s[stage][lane] = in[r * 32 + lane];
      arrive(full, kWrong ? 64 : 96);
    } else {
      if (!kWrong || warp == 1) wait(full, kWrong ? 64 : 96);
      sum += s[stage][31 - lane];  // LINE waits_for_nobody
      if (r + 2 < rounds) arrive(empty, 96);
    }
  }
  if (warp > 0) out[threadIdx.x - 32] = sum;
}
KERNEL waits_for_nobody(const int* in, int* out, int rounds) {
  produce<true>(in, out, rounds);
}

// --- programs that are right ---

KERNEL producer_and_consumers(const int* in, int* out, int rounds) {
  produce<false>(in, out, rounds);
}

KERNEL tree_reduction(const int* in, int* out) {
  __shared__ int s[256];
  s[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  for (int d = 128; d >= 32; d /= 2) {
    if (threadIdx.x < d) s[threadIdx.x] += s[threadIdx.x + d];
    __syncthreads();
  }
  if (threadIdx.x < 32) {
    for (int d = 16; d > 0; d /= 2) {
      int v = s[threadIdx.x];
      if (threadIdx.x < d) v += s[threadIdx.x + d];
      __syncwarp();
      s[threadIdx.x] = v;
      __syncwarp();
    }
  }
  if (threadIdx.x == 0) *out = s[0];
}

KERNEL double_buffering(const float* in, float* out, int tiles) {
  __shared__ float s[2][4][64];
  float sum = 0;
  s[0][threadIdx.x / 16][threadIdx.x % 16] = in[threadIdx.x];
  for (int t = 0; t < tiles; ++t) {
    __syncthreads();
    if (t + 1 < tiles)
      s[(t + 1) % 2][threadIdx.x / 16][threadIdx.x % 16] = in[(t + 1) * 64 + threadIdx.x];
    for (int i = 0; i < 16; ++i) sum += s[t % 2][i % 4][(threadIdx.x + i) % 16];
  }
  out[threadIdx.x] = sum;
}

KERNEL warp_pipeline(const int* in, int* out, int rounds) {
  __shared__ int s[4][32];
  int* mine = s[threadIdx.x / 32];
  const int lane = threadIdx.x % 32;
  int v = in[threadIdx.x];
  for (int r = 0; r < rounds; ++r) {
    mine[lane] = v;
    __syncwarp();
    v += mine[(lane + 1) % 32];
    __syncwarp();
  }
  out[threadIdx.x] = v;
}

// Each block waits for the one before it and hands its prefix on.
KERNEL look_back(const int* in, int* prefix, int* ready, int* out) {
  __shared__ int before;
  if (threadIdx.x == 0) {
    int sum = 0;
    if (blockIdx.x > 0) {
      while (atomicAdd(&ready[blockIdx.x - 1], 0) == 0) {
      }
      __threadfence();
      sum = prefix[blockIdx.x - 1];
    }
    before = sum;
    prefix[blockIdx.x] = sum + in[blockIdx.x];
    __threadfence();
    atomicExch(&ready[blockIdx.x], 1);
  }
  __syncthreads();
  out[blockIdx.x * blockDim.x + threadIdx.x] = before + threadIdx.x;
}

KERNEL spin_lock(int* lock, int* count) {
  if (threadIdx.x % 16 != 0) return;
  while (atomicCAS(lock, 0, 1) != 0) {
  }
  __threadfence();
  *count = *count + 1;
  __threadfence();
  atomicExch(lock, 0);
}

struct Padded {
  int8_t a;
  int32_t b;
  int16_t c;
};
KERNEL fills_structs(Padded* p) {
  Padded& x = p[threadIdx.x];
  x.a = threadIdx.x;
  x.b = 5;
  x.c = 7;
}
KERNEL copies_structs(const Padded* from, Padded* to, int* out) {
  __shared__ Padded s[32];
  const auto* words = reinterpret_cast<const int*>(from);
  auto* shared = reinterpret_cast<int*>(s);
  for (int i = threadIdx.x; i < 32 * sizeof(Padded) / 4; i += 32) shared[i] = words[i];
  __syncwarp();
  for (int i = threadIdx.x; i < 32 * sizeof(Padded) / 4; i += 32)
    reinterpret_cast<int*>(to)[i] = shared[i];
  __syncwarp();
  out[threadIdx.x] = to[threadIdx.x].a + to[threadIdx.x].b + to[threadIdx.x].c;
}
// The copies still hold nothing where nothing was: this reads the padding.
KERNEL reads_padding(const Padded* p, int* out) {
  out[threadIdx.x] = reinterpret_cast<const int*>(p)[3 * threadIdx.x] + 1;  // LINE reads_padding
}

KERNEL bytes_side_by_side(const uint8_t* in, uint8_t* out) {
  __shared__ uint8_t s[128];
  s[threadIdx.x] = in[threadIdx.x];
  out[blockIdx.x * 128 + threadIdx.x] = s[threadIdx.x];
  __syncthreads();
  out[blockIdx.x * 128 + threadIdx.x] += s[127 - threadIdx.x];
}

KERNEL adds_like_old_architectures(double* sum) {
  auto* bits = reinterpret_cast<unsigned long long*>(sum);
  unsigned long long seen, old = *bits;
  do {
    seen = old;
    old = atomicCAS(bits, seen, __double_as_longlong(__longlong_as_double(seen) + 1.0));
  } while (old != seen);
}

/// What one lane acquired is known to those it tells by shfl: so cooperative groups do it.
KERNEL tells_by_shuffle(const int* in, int* out) {
  __shared__ int s[32];
  __shared__ unsigned come;
  if (threadIdx.x == 0) come = 0;
  __syncthreads();
  const int lane = threadIdx.x % 32;
  if (threadIdx.x < 32) {
    s[lane] = in[lane];
    __syncwarp();
    if (lane == 0)
      asm volatile(
          "red.release.cta.shared.or.b32 [%0], 1;" ::"r"(unsigned(__cvta_generic_to_shared(&come)))
          : "memory");
  } else {
    unsigned seen = 0;
    do {
      if (lane == 0)
        asm volatile("ld.acquire.cta.shared.b32 %0, [%1];"
                     : "=r"(seen)
                     : "r"(unsigned(__cvta_generic_to_shared(&come)))
                     : "memory");
      seen = __shfl_sync(~0u, seen, 0);
    } while (seen == 0);
    out[lane] = s[31 - lane];
  }
}

// Threads that have exited are not waited for: some of a warp, and a whole one.
KERNEL exits_before_barrier(const int* in, int* out) {
  __shared__ int s[96];
  s[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  if (threadIdx.x >= 40) return;
  const int v = s[95 - threadIdx.x];
  __syncthreads();
  s[threadIdx.x] = v;
  __syncthreads();
  out[threadIdx.x] = s[39 - threadIdx.x];
}

// A volatile array: its accesses do not race with each other, though nothing says who comes first.
KERNEL volatile_array(int* out) {
  __shared__ volatile int s[64];
  s[threadIdx.x] = 7;
  __syncthreads();
  s[threadIdx.x] = 7 + s[63 - threadIdx.x];
  out[threadIdx.x] = s[threadIdx.x];
}

// What is computed from values that nothing defines, and then dropped.
KERNEL sum_of_lanes_that_stay(const int* in, int* out, int count) {
  sum_of_some<true>(in, out, count);
}
KERNEL drops_what_is_undefined(const int* in, int* out, int count) {
  __shared__ int s[64];
  const int i = threadIdx.x;
  const int v = in[i];  // only `count` of them are there
  const bool odd = v % 2 != 0;
  s[i] = v + 1;
  __syncthreads();
  const int sum = s[i] + s[(i + 1) % count] * 2;
  if (i < count && odd) out[i] = sum;
  if (i < count && !odd) out[i] = -sum;
}

KERNEL histogram(const int* in, int* out) {
  __shared__ int bins[16];
  if (threadIdx.x < 16) bins[threadIdx.x] = 0;
  __syncthreads();
  atomicAdd(&bins[in[blockIdx.x * 128 + threadIdx.x] % 16], 1);
  __syncthreads();
  if (threadIdx.x < 16) atomicAdd(&out[threadIdx.x], bins[threadIdx.x]);
}

KERNEL all_say_the_same(const int* in, int* out) {
  __shared__ int any;
  any = 0;
  __syncthreads();
  if (in[threadIdx.x] > 100) any = 1;
  __syncthreads();
  if (any) *out = 1;
}

KERNEL grid_barrier(int* a, unsigned* count, int* out, int rounds) {
  for (int r = 0; r < rounds; ++r) {
    a[blockIdx.x * 32 + threadIdx.x] = r;
    __syncthreads();
    if (threadIdx.x == 0) {
      __threadfence();
      atomicAdd(count, 1u);
      while (*static_cast<volatile unsigned*>(count) < (2 * r + 1) * gridDim.x) {
      }
      __threadfence();
    }
    __syncthreads();
    out[blockIdx.x * 32 + threadIdx.x] = a[(blockIdx.x + 1) % gridDim.x * 32 + threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0) {
      __threadfence();
      atomicAdd(count, 1u);
      while (*static_cast<volatile unsigned*>(count) < (2 * r + 2) * gridDim.x) {
      }
      __threadfence();
    }
    __syncthreads();
  }
}

__device__ __noinline__ int sum_of(int4 a, int by) {
  int v[4] = {a.x, a.y, a.z, a.w};
  int sum = 0;
  for (int i = 0; i < 4; ++i) sum += v[(i + by) % 4];
  return sum;
}
KERNEL calls_with_locals(const int4* in, int* out) {
  out[threadIdx.x] = sum_of(in[threadIdx.x], threadIdx.x) + sum_of(in[0], 1);
}

KERNEL in_place(float* a, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    a[i] = a[i] * 2 + 1;
}

// --- accesses of sixteen bytes, beside narrower ones: mistakes, and the same with barriers ---

__device__ int4 plus_one(int4 v) {
  return make_int4(v.x + 1, v.y + 1, v.z + 1, v.w + 1);
}

KERNEL reads_a_part(const int4* in, int* out, bool right) {
  __shared__ int4 s[64];
  s[threadIdx.x] = in[threadIdx.x];  // LINE writes_the_whole
  if (right) __syncthreads();
  out[threadIdx.x] =
      reinterpret_cast<const int*>(s)[(threadIdx.x ^ 32) * 4 + 3];  // LINE reads_a_part
}

KERNEL reads_the_whole(const int* in, int4* out, bool right) {
  __shared__ int4 s[64];
  s[threadIdx.x] = make_int4(0, 0, 0, 0);
  __syncthreads();
  for (int i = 0; i < 4; ++i) {
    const int at = i * 64 + threadIdx.x;
    reinterpret_cast<int*>(s)[at] = in[at];  // LINE writes_a_part
  }
  if (right) __syncthreads();
  out[threadIdx.x] = plus_one(s[threadIdx.x ^ 32]);  // LINE reads_the_whole
}

KERNEL overwrites_a_part_read(const int4* in, int4* out, bool right) {
  __shared__ int4 s[64];
  s[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  const int word = reinterpret_cast<int*>(s)[(threadIdx.x ^ 32) * 4 + 1];  // LINE reads_one_word
  if (right) __syncthreads();
  s[threadIdx.x] = make_int4(word, word, word, 1);  // LINE overwrites_the_whole
  __syncthreads();
  out[threadIdx.x] = s[threadIdx.x];
}

// Lane l reads vector at[l], as others may, near or far; the lane of that number changes it.
KERNEL overwrites_what_others_read(const int4* in, int4* out, const int* at, bool right) {
  __shared__ int4 s[32];
  s[threadIdx.x] = in[threadIdx.x];
  const int mine = at[threadIdx.x];
  __syncwarp();
  const int4 v = s[mine];  // LINE lanes_share
  if (right) __syncwarp();
  if (mine == threadIdx.x) s[threadIdx.x] = plus_one(v);  // LINE overwrites_what_others_read
  __syncwarp();
  out[threadIdx.x] = s[threadIdx.x];
}

KERNEL vectors_meet(const int4* in, int4* out, const int* at) {
  __shared__ int4 s[32];
  const int mine = at[threadIdx.x];
  s[mine] = in[threadIdx.x];  // LINE vectors_meet
  __syncwarp();
  out[threadIdx.x] = plus_one(s[mine]);
}

KERNEL three_words_of_four(const int* in, int* out) {
  __shared__ int4 s[32];
  s[threadIdx.x].x = in[0], s[threadIdx.x].y = in[1], s[threadIdx.x].z = in[2];
  if (threadIdx.x != 21) s[threadIdx.x].w = in[3];
  __syncwarp();
  const int4 v = plus_one(s[threadIdx.x]);  // LINE three_words_of_four
  out[threadIdx.x] = v.x + v.y + v.z + v.w;
}

// Every block reads the table; the last one changes a vector, or a word, of it.
KERNEL changes_what_all_read(int4* table, int* out, int words) {
  int sum = 0;
  for (unsigned i = threadIdx.x; i < 256; i += 32) {
    const int4 v = table[i];  // LINE all_blocks_read
    sum += v.x + v.y + v.z + v.w;
  }
  out[blockIdx.x * 32 + threadIdx.x] = sum;
  __syncwarp();
  if (blockIdx.x != gridDim.x - 1 || threadIdx.x != 7) return;
  if (words == 4) table[131] = make_int4(1, 2, 3, sum);  // LINE changes_a_vector
  if (words == 1) table[131].y = sum;                    // LINE changes_a_word
}

// Block 0 writes vectors, block 1 words; of the same when `apart` is 0.
KERNEL vectors_and_words(int4* a, int apart) {
  if (blockIdx.x == 0) a[threadIdx.x] = make_int4(1, 2, 3, 4);                // LINE writes_vectors
  if (blockIdx.x == 1) reinterpret_cast<int*>(a + apart)[threadIdx.x] = 100;  // LINE writes_words
}

// Every block tells the last one what it wrote; one of them writes too late.
KERNEL one_of_many_blocks(int* a, unsigned* count, int* out, unsigned late) {
  if (blockIdx.x != late) a[blockIdx.x] = 1;
  __threadfence();
  const unsigned before = atomicAdd(count, 1u);
  if (blockIdx.x == late) a[blockIdx.x] = 1;  // LINE writes_after_telling
  if (before + 1 != gridDim.x) return;
  __threadfence();
  int sum = 0;
  for (unsigned i = 0; i < gridDim.x; ++i) sum += a[i];  // LINE reads_of_many_blocks
  *out = sum;
}
