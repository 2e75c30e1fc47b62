// Rooflines and occupancy against numbers worked out by hand.
#include "reports/cost.hpp"

#include <gtest/gtest.h>

namespace attest {
namespace {

CallCost call_with(const emulator::Totals& totals) {
  CallCost call;
  call.operation = "prefill";
  call.problem = "q=1x1x64x64 kv=1x64x64 in=f16";
  call.kernels.resize(1);
  call.kernels[0].profile.kernel = "attest::kernels::flash<3>";
  call.kernels[0].profile.block_threads = 128;
  call.kernels[0].profile.block_shared_bytes = 32768;
  call.kernels[0].profile.totals = totals;
  return call;
}

TEST(Cost, WhatTakesLongestDecides) {
  const Machine& h100 = machines().front();
  emulator::Totals totals;
  totals.tensor_flops = 989'400'000;  // a microsecond of them
  CallCost call = call_with(totals);
  EXPECT_DOUBLE_EQ(roofline(call, h100).seconds, 1e-6);
  EXPECT_EQ(roofline(call, h100).bound, "tensor");
  call.least_bytes = 6'700'000;  // two of memory
  EXPECT_DOUBLE_EQ(roofline(call, h100).seconds, 2e-6);
  EXPECT_EQ(roofline(call, h100).bound, "memory");
  // 132 multiprocessors x 1830 cycles of a microsecond x 4 = 966,240 warp instructions.
  call.kernels[0].profile.totals.warp_instructions = 3 * 966'240;
  EXPECT_DOUBLE_EQ(roofline(call, h100).seconds, 3e-6);
  EXPECT_EQ(roofline(call, h100).bound, "issue");
  EXPECT_EQ(roofline(call, machines()[1]).bound, "issue");
}

TEST(Cost, TheScarcestDecidesHowManyBlocksFit) {
  KernelCost kernel = call_with({}).kernels[0];
  EXPECT_EQ(resident_blocks(kernel, 0), 0);  // nobody knows the registers
  kernel.use = {{.registers = 71}, {.registers = 128}};
  // (32768 + 1024) bytes of 228 KiB: 6; 71 x 32 registers, rounded up to 2304, x 4 warps: 7.
  EXPECT_EQ(resident_blocks(kernel, 0), 6);
  EXPECT_EQ(resident_blocks(kernel, 1), 4);  // 128 x 32 x 4 = 16384 of 65536
  kernel.profile.block_shared_bytes = 0;
  EXPECT_EQ(resident_blocks(kernel, 0), 7);
  kernel.use[0].registers = 16;
  EXPECT_EQ(resident_blocks(kernel, 0), 16);  // 2048 threads
}

TEST(Cost, OneMmaInEightInstructions) {
  emulator::Totals totals;
  totals.tensor_flops = 2 * 16 * 8 * 16;
  totals.warp_instructions = 8;
  EXPECT_EQ(tensor_share(totals), 0.125);
  EXPECT_EQ(tensor_share({}), 0);
}

TEST(Cost, TheTableSaysWhatIsUnknownAndWhatWasDeclined) {
  CallCost declined;
  declined.operation = "decode";
  declined.declined = "no pages";
  const CallCost calls[] = {call_with({}), declined};
  const std::string table = cost_table(calls);
  EXPECT_NE(table.find("| flash<3> | 0 x 128 | 32768 | - | - | - |"), std::string::npos) << table;
  EXPECT_NE(table.find("nothing: no pages"), std::string::npos);
}

}  // namespace
}  // namespace attest
