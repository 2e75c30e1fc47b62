// What mma_prefill costs, counted by the emulator: whom tensor cores serve, which tiles are worked
// on, and that shared memory is never waited for. What it computes is the properties' business.
#include <gtest/gtest.h>

#include "optimized/plugin/testing/test_cases.hpp"
#include "optimized/plugin/worker.hpp"

namespace attest {
namespace {

constexpr Index kRows = 64, kWarpRows = 16;

/// Keys of a tile, by the widths.
Index tile_keys(const Problem& p) {
  return std::max(p.head_dim, p.head_dim_v) > 128 ? 32 : 64;
}

/// Operations of the tensor cores: each warp of 16 rows works on the tiles of which it may see a
/// key, on whole steps of 16 columns.
std::int64_t tensor_flops_of(const Problem& p) {
  const auto whole = [](Index columns) { return (columns + 15) / 16 * 16; };
  Index tiles = 0;
  for (Index row = 0; row < p.seqlen_q; row += kWarpRows) {
    const Index last = std::min(row + kWarpRows, p.seqlen_q) - 1 + (p.seqlen_kv - p.seqlen_q);
    const Index seen = p.causal ? std::min(last + 1, p.seqlen_kv) : p.seqlen_kv;
    tiles += std::max<Index>(seen + tile_keys(p) - 1, 0) / tile_keys(p);
  }
  return p.batch * p.num_heads_q * tiles * 2 * kWarpRows * tile_keys(p) *
         (whole(p.head_dim) + whole(p.head_dim_v));
}

Problem problem(Format input, Index queries, Index keys, Index head_dim, Index head_dim_v) {
  Problem p;
  p.batch = 1;
  p.num_heads_q = 2;
  p.input = input;
  p.output = input == Format::e4m3 ? Format::bf16 : input;
  p.seqlen_q = queries;
  p.seqlen_kv = keys;
  p.head_dim = head_dim;
  p.head_dim_v = head_dim_v;
  p.softmax_scale = 0x1p-20F;
  return p;
}

class MmaPrefill : public testing::Test {
 protected:
  Counters counted(const Problem& p) {
    Reply reply = subject_.call(Attend{Operation::prefill, p, counting_values(p)}, Poison::nan);
    EXPECT_FALSE(reply.fault) << reply.fault->kind << ": " << reply.fault->what;
    return reply.counters;
  }
  static Subject opened() {
    WorkerOptions options;
    options.plugin = program_folder() / "plugins" / "attest_kernels.so";
    options.device = DeviceChoice::emulated;
    return open_plugin(options);
  }
  Subject subject_ = opened();
};

TEST_F(MmaPrefill, WorksOnTheTilesThatAreSeenWithoutBankConflicts) {
  for (const Format format : {Format::f16, Format::bf16}) {
    for (const Index head_dim : {8, 16, 40, 64, 72, 128, 192, 256}) {
      for (const Index head_dim_v : {Index{24}, Index{128}, head_dim}) {
        for (const bool causal : {false, true}) {
          Problem p = problem(format, kRows + 9, 2 * kRows + 1, head_dim, head_dim_v);
          p.causal = causal;
          const Counters counters = counted(p);
          EXPECT_EQ(counters.tensor_flops, tensor_flops_of(p)) << head_dim << " " << head_dim_v;
          EXPECT_EQ(counters.bank_conflicts, 0) << head_dim << " " << head_dim_v;
          EXPECT_EQ(counters.local_bytes, 0) << head_dim << " " << head_dim_v;
        }
      }
    }
  }
}

TEST_F(MmaPrefill, WaitsForEachTileOnce) {
  Problem p = problem(Format::bf16, kRows, 5 * kRows, 64, 64);
  EXPECT_EQ(counted(p).barriers, p.num_heads_q * 5 * (kRows / kWarpRows));
}

TEST_F(MmaPrefill, LeavesToOthersWhatItCannotRead) {
  EXPECT_EQ(counted(problem(Format::f32, 3, 5, 64, 64)).tensor_flops, 0);
  EXPECT_EQ(counted(problem(Format::e4m3, 3, 5, 64, 64)).tensor_flops, 0);
  EXPECT_EQ(counted(problem(Format::f16, 3, 5, 60, 64)).tensor_flops, 0);
  EXPECT_EQ(counted(problem(Format::bf16, 3, 5, 64, 4)).tensor_flops, 0);
  EXPECT_GT(counted(problem(Format::bf16, 3, 5, 64, 8)).tensor_flops, 0);
}

}  // namespace
}  // namespace attest
