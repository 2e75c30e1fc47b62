// What mma_prefill costs, counted by the emulator: whom tensor cores serve, which tiles are worked
// on, and that shared memory is never waited for. What it computes is the properties' business.
#include <gtest/gtest.h>

#include "optimized/plugin/test_cases.hpp"
#include "optimized/plugin/worker.hpp"

namespace attest {
namespace {

constexpr Index kRows = 64, kWarpRows = 16;

/// Keys of a tile, by the widths.
Index tile_keys(const Problem& p) {
  return std::max(p.depth, p.v_depth) > 128 ? 32 : 64;
}

/// Operations of the tensor cores: each warp of 16 rows works on the tiles of which it may see a
/// key, on whole steps of 16 columns.
std::int64_t tensor_flops_of(const Problem& p) {
  const auto whole = [](Index columns) { return (columns + 15) / 16 * 16; };
  Index tiles = 0;
  for (Index row = 0; row < p.queries; row += kWarpRows) {
    const Index last = std::min(row + kWarpRows, p.queries) - 1 + (p.keys - p.queries);
    const Index seen = p.causal ? std::min(last + 1, p.keys) : p.keys;
    tiles += std::max<Index>(seen + tile_keys(p) - 1, 0) / tile_keys(p);
  }
  return p.batch * p.query_heads * tiles * 2 * kWarpRows * tile_keys(p) *
         (whole(p.depth) + whole(p.v_depth));
}

Problem problem(Format input, Index queries, Index keys, Index depth, Index v_depth) {
  Problem p;
  p.batch = 1;
  p.query_heads = 2;
  p.input = input;
  p.output = input == Format::e4m3 ? Format::bf16 : input;
  p.queries = queries;
  p.keys = keys;
  p.depth = depth;
  p.v_depth = v_depth;
  p.scale = 0x1p-20F;
  return p;
}

class MmaPrefill : public testing::Test {
 protected:
  Counters counted(const Problem& p) {
    Reply reply = subject_.prefill(p, counting_values(p), Poison::nan);
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
    for (const Index depth : {8, 16, 40, 64, 72, 128, 192, 256}) {
      for (const Index v_depth : {Index{24}, Index{128}, depth}) {
        for (const bool causal : {false, true}) {
          Problem p = problem(format, kRows + 9, 2 * kRows + 1, depth, v_depth);
          p.causal = causal;
          const Counters counters = counted(p);
          EXPECT_EQ(counters.tensor_flops, tensor_flops_of(p)) << depth << " " << v_depth;
          EXPECT_EQ(counters.bank_conflicts, 0) << depth << " " << v_depth;
          EXPECT_EQ(counters.local_bytes, 0) << depth << " " << v_depth;
        }
      }
    }
  }
}

TEST_F(MmaPrefill, WaitsForEachTileOnce) {
  Problem p = problem(Format::bf16, kRows, 5 * kRows, 64, 64);
  EXPECT_EQ(counted(p).barriers, p.query_heads * 5 * (kRows / kWarpRows));
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
