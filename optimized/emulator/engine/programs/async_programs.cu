// What async_test.cpp runs: asynchronous copies, mbarriers and cooperative groups as nvcc compiles
// them, each right program beside twins with one mistake.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

#include <cuda/barrier>
#include <cuda/pipeline>

// libcu++ means barriers to be declared so, though their constructors do not run.
#pragma nv_diag_suppress static_var_with_dynamic_init

#define KERNEL extern "C" __global__ void
namespace cg = cooperative_groups;

#define SHARED(p) static_cast<unsigned>(__cvta_generic_to_shared(p))
#define COPY16(to, from)                                                                         \
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16;" ::"r"(SHARED(to)), "l"(from) \
               : "memory")
#define COMMIT() asm volatile("cp.async.commit_group;" ::: "memory")
#define WAIT(groups) asm volatile("cp.async.wait_group %0;" ::"n"(groups) : "memory")

// --- a double-buffered pipeline of tiles; kLeft: groups that may be under way when a tile is read
// ---
template <int kLeft>
__device__ __forceinline__ void sum_tiles(const int4* in, int* out, int tiles) {
  __shared__ int4 tile[2][128];
  const int t = threadIdx.x;
  COPY16(&tile[0][t], in + t);  // LINE first_copy
  COMMIT();
  int sum = 0;
  for (int i = 0; i < tiles; ++i) {
    if (i + 1 < tiles) COPY16(&tile[(i + 1) % 2][t], in + (i + 1) * 128 + t);
    COMMIT();
    if (kLeft >= 0) WAIT(kLeft >= 0 ? kLeft : 0);
    __syncthreads();
    const int4 v = tile[i % 2][127 - t];  // LINE reads_tile
    sum = sum * 3 + v.x + v.y + v.z + v.w;
    __syncthreads();
  }
  out[blockIdx.x * 128 + t] = sum;
}
KERNEL pipeline(const int4* in, int* out, int tiles) {
  sum_tiles<1>(in, out, tiles);
}
KERNEL pipeline_waits_too_little(const int4* in, int* out, int tiles) {
  sum_tiles<2>(in, out, tiles);
}
KERNEL pipeline_never_waits(const int4* in, int* out, int tiles) {
  sum_tiles<-1>(in, out, tiles);
}

KERNEL writes_source(int4* in, int* out) {
  __shared__ int4 tile[32];
  const int t = threadIdx.x;
  COPY16(&tile[t], in + t);  // LINE copies_source
  COMMIT();
  in[t].x = 7;  // LINE writes_source
  WAIT(0);
  out[t] = tile[t].x;
}
KERNEL copies_twice(const int4* in, int* out) {
  __shared__ int4 tile[32];
  const int t = threadIdx.x;
  COPY16(&tile[t], in + t);
  COPY16(&tile[t], in + 32 + t);  // LINE copies_twice
  COMMIT();
  WAIT(0);
  out[t] = tile[t].x;
}
KERNEL ends_early(const int4* in, int* out) {
  __shared__ int4 tile[32];
  COPY16(&tile[threadIdx.x], in + threadIdx.x);  // LINE ends_early
  COMMIT();
  out[threadIdx.x] = 1;
}

// Parts of 4, 8 and 16 bytes; thread t reads t % 5 words at most, the rest is zero. `none` is no
// address at all: nothing may be read there.
KERNEL parts(const int* in, const int* none, int* out) {
  __shared__ alignas(16) int to[32][8];
  const int t = threadIdx.x;
  for (int i = 0; i < 8; ++i) to[t][i] = -1;
  const int words = t % 5;
  const int* from = words == 0 ? none : in + 4 * t;
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(SHARED(&to[t][0])), "l"(from),
               "r"(4 * words)
               : "memory");
  asm volatile("cp.async.ca.shared.global [%0+16], [%1], 8, %2;" ::"r"(SHARED(&to[t][0])),
               "l"(from), "r"(min(4 * words, 8))
               : "memory");
  asm volatile(
      "{ .reg .pred skip; setp.eq.s32 skip, %2, 0;\n"
      "  cp.async.ca.shared.global [%0], [%1], 4, skip; }" ::"r"(SHARED(&to[t][6])),
      "l"(from), "r"(words)
      : "memory");
  asm volatile("cp.async.wait_all;" ::: "memory");
  __syncwarp();
  for (int i = 0; i < 8; ++i) out[t * 8 + i] = to[t][i];
}
KERNEL copies_past_end(const int4* in, int* out, int n) {
  __shared__ int4 tile[32];
  COPY16(&tile[threadIdx.x], in + threadIdx.x + (threadIdx.x == 9 ? n : 0));  // LINE past_end
  asm volatile("cp.async.wait_all;" ::: "memory");
  out[threadIdx.x] = tile[threadIdx.x].x;
}
KERNEL copies_past_shared(const int4* in, int* out, int n) {
  __shared__ int4 tile[32];
  COPY16(&tile[threadIdx.x + n], in + threadIdx.x);  // LINE past_shared
  asm volatile("cp.async.wait_all;" ::: "memory");
  out[threadIdx.x] = tile[threadIdx.x].x;
}

// --- mbarriers by hand: warp 0 copies, warp 1 adds ---
enum { kWaits = 1, kStarts = 2, kAsync = 4, kArrivesTooOften = 8, kTouches = 16, kLacks = 32 };
template <int kHow>
__device__ __forceinline__ void produce(const int4* in, int* out, int tiles) {
  __shared__ int4 tile[2][32];
  __shared__ unsigned long long full[2], empty[2];
  const int t = threadIdx.x % 32;
  if (threadIdx.x == 0 && (kHow & kStarts)) {
    for (int i = 0; i < 2; ++i) {
      const int needed = kHow & kLacks ? 33 : 32;
      asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(SHARED(&full[i])), "r"(needed));
      asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(SHARED(&empty[i])), "r"(32));
    }
  }
  __syncthreads();
  const auto arrive = [](unsigned long long* b) {
    asm volatile("{ .reg .b64 state; mbarrier.arrive.shared.b64 state, [%0]; }" ::"r"(SHARED(b))
                 : "memory");  // LINE arrives
  };
  const auto wait = [](unsigned long long* b, int parity) {
    asm volatile(
        "{ .reg .pred done;\n"
        "AGAIN: mbarrier.test_wait.parity.shared.b64 done, [%0], %1;\n"
        "@!done bra AGAIN; }" ::"r"(SHARED(b)),
        "r"(parity)
        : "memory");  // LINE waits
  };
  if (threadIdx.x < 32) {
    for (int i = 0; i < tiles; ++i) {
      wait(&empty[i % 2], (i / 2 + 1) % 2);
      COPY16(&tile[i % 2][t], in + i * 32 + t);  // LINE produces
      if (kHow & kAsync) {
        asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(SHARED(&full[i % 2]))
                     : "memory");
      } else {
        COMMIT();
        WAIT(0);
        arrive(&full[i % 2]);
      }
      if (kHow & kArrivesTooOften) {
        asm volatile("{ .reg .b64 s; mbarrier.arrive.noComplete.shared.b64 s, [%0], 33; }" ::"r"(
            SHARED(&full[i % 2])));
      }
    }
  } else {
    int sum = 0;
    for (int i = 0; i < tiles; ++i) {
      if ((kHow & kWaits) || i % 2 == 0) wait(&full[i % 2], i / 2 % 2);
      sum = sum * 3 + tile[i % 2][31 - t].x;  // LINE consumes
      arrive(&empty[i % 2]);
    }
    if (kHow & kTouches) sum += int(full[0]);  // LINE touches_object
    out[blockIdx.x * 32 + t] = sum;
  }
}
KERNEL hand_over(const int4* in, int* out, int tiles) {
  produce<kWaits | kStarts | kAsync>(in, out, tiles);
}
KERNEL hand_over_waiting(const int4* in, int* out, int tiles) {
  produce<kWaits | kStarts>(in, out, tiles);
}
// Waits for every other tile only.
KERNEL hand_over_unseen(const int4* in, int* out, int tiles) {
  produce<kStarts | kAsync>(in, out, tiles);
}
KERNEL hand_over_uninitialised(const int4* in, int* out, int tiles) {
  produce<kWaits | kAsync>(in, out, tiles);
}
KERNEL hand_over_too_often(const int4* in, int* out, int tiles) {
  produce<kWaits | kStarts | kArrivesTooOften>(in, out, tiles);
}
KERNEL hand_over_touched(const int4* in, int* out, int tiles) {
  produce<kWaits | kStarts | kAsync | kTouches>(in, out, tiles);
}
KERNEL hand_over_lacking(const int4* in, int* out, int tiles) {
  produce<kWaits | kStarts | kAsync | kLacks>(in, out, tiles);
}

// Counts, drops, bytes, states: what each operation answers.
KERNEL mbarrier_answers(unsigned* out) {
  __shared__ unsigned long long b;
  const unsigned at = SHARED(&b);
  unsigned long long first, second;
  unsigned pending, done;
  if (threadIdx.x != 0) return;
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 5;" ::"r"(at));
  asm volatile("mbarrier.arrive.noComplete.release.cta.shared::cta.b64 %0, [%1], 2;"
               : "=l"(first)
               : "r"(at));
  asm("mbarrier.pending_count.b64 %0, %1;" : "=r"(pending) : "l"(first));
  out[0] = pending;  // 5: before the arrival
  asm volatile("mbarrier.arrive_drop.shared::cta.b64 %0, [%1];" : "=l"(second) : "r"(at));
  asm("mbarrier.pending_count.b64 %0, %1;" : "=r"(pending) : "l"(second));
  out[1] = pending;  // 3
  asm volatile("mbarrier.arrive.noComplete.shared.b64 %0, [%1], 1;" : "=l"(second) : "r"(at));
  const auto test = [&](unsigned long long state) {
    asm volatile(
        "{ .reg .pred p; mbarrier.test_wait.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
        : "=r"(done)
        : "r"(at), "l"(state)
        : "memory");
    return done;
  };
  out[2] = test(first);  // 0: one arrival lacks
  asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(second) : "r"(at));
  out[3] = test(first);  // 1
  asm volatile("mbarrier.arrive.shared.b64 %0, [%1];" : "=l"(second) : "r"(at));
  asm("mbarrier.pending_count.b64 %0, %1;" : "=r"(pending) : "l"(second));
  out[4] = pending;  // 4: one was dropped
  asm volatile("mbarrier.inval.shared.b64 [%0];" ::"r"(at));
  b = 77;
  out[5] = unsigned(b);
}

// Thread 0 makes an mbarrier, arrives and waits; the others wait, knowing of it or not.
template <bool kKnow>
__device__ __forceinline__ void all_wait(unsigned* out) {
  __shared__ unsigned long long b;
  const unsigned at = SHARED(&b);
  const auto wait = [&] {
    unsigned done = 0;
    while (done == 0) {
      asm volatile(
          "{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], 0; selp.u32 %0, 1, 0, p; }"
          : "=r"(done)
          : "r"(at)
          : "memory");
    }
  };
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(at) : "memory");
    asm volatile("{ .reg .b64 s; mbarrier.arrive.shared.b64 s, [%0]; }" ::"r"(at) : "memory");
    wait();
  }
  if (kKnow) __syncthreads();
  wait();
  out[threadIdx.x] = 1;
}
KERNEL waits_before_it_is_made(unsigned* out) {
  all_wait<false>(out);
}
KERNEL waits_when_it_is_made(unsigned* out) {
  all_wait<true>(out);
}

// --- libcu++ and cooperative groups ---
KERNEL block_barrier(const int* in, int* out) {
  __shared__ cuda::barrier<cuda::thread_scope_block> bar;
  __shared__ alignas(16) int s[128];
  if (threadIdx.x == 0) init(&bar, blockDim.x);
  __syncthreads();
  const int at = blockIdx.x * 128 + threadIdx.x;
  cuda::memcpy_async(s + threadIdx.x, in + at, sizeof(int), bar);
  auto token = bar.arrive();
  bar.wait(std::move(token));
  int sum = s[127 - threadIdx.x];
  bar.arrive_and_wait();
  s[threadIdx.x] = sum + 1;
  if (threadIdx.x >= 64) {
    bar.arrive_and_drop();
    return;
  }
  bar.arrive_and_wait();
  bar.arrive_and_wait();
  out[blockIdx.x * 64 + threadIdx.x] = s[64 + threadIdx.x] * 1000 + s[63 - threadIdx.x];
}
KERNEL block_barrier_not_waited(const int* in, int* out) {
  __shared__ cuda::barrier<cuda::thread_scope_block> bar;
  __shared__ alignas(16) int s[128];
  if (threadIdx.x == 0) init(&bar, blockDim.x);
  __syncthreads();
  cuda::memcpy_async(s + threadIdx.x, in + threadIdx.x, sizeof(int), bar);
  auto token = bar.arrive();
  out[threadIdx.x] = s[127 - threadIdx.x];  // LINE not_waited
  bar.wait(std::move(token));
}

KERNEL group_copy(const int* in, int* out) {
  __shared__ alignas(16) int s[128];
  cg::thread_block block = cg::this_thread_block();
  cg::memcpy_async(block, s, in, sizeof s);
  cg::wait(block);
  out[threadIdx.x] = s[127 - threadIdx.x];
}

KERNEL shared_pipeline(const int4* in, int* out, int tiles) {
  __shared__ int4 s[2][128];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  auto block = cg::this_thread_block();
  auto pipe = cuda::make_pipeline(block, &state);
  const auto fetch = [&](int i) {
    pipe.producer_acquire();
    cuda::memcpy_async(block, s[i % 2], in + i * 128, cuda::aligned_size_t<16>(sizeof s[0]), pipe);
    pipe.producer_commit();
  };
  int sum = 0;
  fetch(0);
  for (int i = 0; i < tiles; ++i) {
    if (i + 1 < tiles) fetch(i + 1);
    pipe.consumer_wait();
    const int4 v = s[i % 2][127 - threadIdx.x];
    sum = sum * 3 + v.x + v.y + v.z + v.w;
    pipe.consumer_release();
  }
  out[threadIdx.x] = sum;
}

KERNEL role_pipeline(const int4* in, int* out, int tiles) {
  __shared__ int4 s[2][64];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  auto block = cg::this_thread_block();
  const bool produces = threadIdx.x < 64;
  auto pipe = cuda::make_pipeline(
      block, &state, produces ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer);
  int sum = 0;
  for (int i = 0; i < tiles; ++i) {
    if (produces) {
      pipe.producer_acquire();
      cuda::memcpy_async(&s[i % 2][threadIdx.x], in + i * 64 + threadIdx.x, sizeof(int4), pipe);
      pipe.producer_commit();
    } else {
      pipe.consumer_wait();
      sum = sum * 3 + s[i % 2][127 - threadIdx.x].x;
      pipe.consumer_release();
    }
  }
  if (!produces) out[threadIdx.x - 64] = sum;
}

KERNEL grid_sync(int* values, int* out) {
  cg::grid_group grid = cg::this_grid();
  for (int i = 0; i < 3; ++i) {
    values[grid.thread_rank()] = int(grid.thread_rank()) + i;
    grid.sync();
    out[grid.thread_rank()] = values[grid.size() - 1 - grid.thread_rank()];
    grid.sync();
  }
}

KERNEL groups(int* out) {
  const int t = threadIdx.x;
  cg::thread_block block = cg::this_thread_block();
  auto tile = cg::tiled_partition<8>(block);
  int* o = out + t * 8;
  o[0] = cg::reduce(tile, t, cg::plus<int>());
  o[1] = cg::inclusive_scan(tile, t);
  o[2] = o[3] = o[4] = o[5] = -1;
  if (t % 3 == 0) {
    auto some = cg::coalesced_threads();
    o[2] = int(some.size());
    o[3] = cg::reduce(some, t, cg::less<int>());
    o[4] = some.shfl(t, 1);
  }
  auto labelled = cg::labeled_partition(cg::coalesced_threads(), t % 5);
  o[5] = cg::reduce(labelled, t, cg::greater<int>());
  auto halves = cg::binary_partition(tile, t % 8 < 3);
  o[6] = int(halves.num_threads());
  tile.sync();
  o[7] = tile.any(t == 9);
}

KERNEL tiles_of_two_warps(int* out) {
  __shared__ cg::block_tile_memory<128> room;
  auto block = cg::this_thread_block(room);
  auto tile = cg::tiled_partition<64>(block);
  int sum = 0;
  for (int i = 0; i < 3; ++i) {
    sum += cg::reduce(tile, int(threadIdx.x) + i, cg::plus<int>());
    tile.sync();
  }
  out[threadIdx.x] = sum;
}

// --- schedules: programs whose result PTX leaves open, and programs that wait for each other ---
KERNEL lanes_collide(int* out) {
  out[threadIdx.x % 2] = threadIdx.x;
}
KERNEL warps_collide(int* out) {
  __shared__ int s;
  s = threadIdx.x / 32;
  __syncthreads();
  if (threadIdx.x == 0) out[0] = s;
}
KERNEL blocks_collide(int* out) {
  if (threadIdx.x == 0) out[0] = blockIdx.x;
}
KERNEL adds_floats(float* sum) {
  atomicAdd(sum, 1.0f / float(1 + blockIdx.x * blockDim.x + threadIdx.x));
}
KERNEL lanes_in_turn(int* order, int* next) {
  order[atomicAdd(next, 1)] = threadIdx.x;
}

// A sum over all earlier blocks, each of which is waited for in turn.
KERNEL look_back(const int* in, volatile int* sums, volatile int* ready, int* out) {
  if (threadIdx.x != 0) return;
  int sum = in[blockIdx.x];
  if (blockIdx.x != 0) {
    while (ready[blockIdx.x - 1] == 0) {
    }
    __threadfence();
    sum += sums[blockIdx.x - 1];
  }
  sums[blockIdx.x] = sum;
  __threadfence();
  ready[blockIdx.x] = 1;
  out[blockIdx.x] = sum;
}

KERNEL waits_for_flag(volatile int* flag, int* out) {
  while (flag[0] == 0) {
  }
  out[threadIdx.x] = 1;
}

KERNEL times(long long* out) {
  __shared__ unsigned long long early;
  const long long begin = clock64();
  unsigned long long now;
  float x = threadIdx.x;
  for (int i = 0; i < 100; ++i) x = x * 0.5f + 1;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  if (threadIdx.x == 0) early = now;
  __syncthreads();
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  out[3 * threadIdx.x] = clock64() - begin;
  out[3 * threadIdx.x + 1] = (long long)(now - early);
  out[3 * threadIdx.x + 2] = (long long)x;
}

// --- barriers misused ---
KERNEL barrier_of_too_many(int* out) {
  asm volatile("bar.sync 1, 128;" ::: "memory");  // LINE too_many
  out[threadIdx.x] = 1;
}
KERNEL barrier_number(int* out, int number) {
  asm volatile("bar.sync %0;" ::"r"(number) : "memory");  // LINE number
  out[threadIdx.x] = 1;
}
KERNEL barrier_mixed(int* out) {
  if (threadIdx.x < 32) {
    asm volatile("bar.sync 1, 64;" ::: "memory");
  } else {
    asm volatile(
        "{ .reg .u32 n; .reg .pred p; setp.eq.u32 p, 0, 0; bar.red.popc.u32 n, 1, 64, p; }" ::
            : "memory");
  }
  out[threadIdx.x] = 1;
}
KERNEL half_a_warp(int* out) {
  if (threadIdx.x < 16) {
    __syncthreads();  // LINE half_a_warp
    out[threadIdx.x] = 1;
  } else {
    __syncwarp();
    out[threadIdx.x] = 2;
  }
}
KERNEL ends_before_barrier(int* out) {
  if (threadIdx.x >= 32) return;
  asm volatile("bar.sync 1, 64;" ::: "memory");  // LINE ends_before_barrier
  out[threadIdx.x] = 1;
}
// A warp that is not full, and one whose lanes have left, count as whole warps.
KERNEL counts_whole_warps(int* out) {
  if (threadIdx.x % 32 >= 20) return;
  asm volatile("bar.sync 1, 64;" ::: "memory");
  out[threadIdx.x] = 1;
}
