// The limit grows with the work, and a small problem's is used up within seconds.
#include "optimized/plugin/instruction_limit.hpp"

#include <gtest/gtest.h>

#include "optimized/plugin/abi.hpp"
#include "reference/problem.hpp"

namespace attest {
namespace {

std::uint64_t limit_of(const Problem& problem) {
  RequestHeader request{};
  request.operation = ATTEST_PREFILL;
  request.problem = abi_problem(problem);
  return instruction_limit(request);
}

constexpr std::uint64_t kOfSeconds = 1 << 28;  // at some 2^25 to 2^27 warp instructions a second

TEST(InstructionLimit, EndsAnEndlessKernelOfASmallProblemInSeconds) {
  Problem small;
  small.batch = small.num_heads_q = small.num_heads_kv = 2;
  small.seqlen_q = small.seqlen_kv = 40;
  small.head_dim = small.head_dim_v = 64;
  EXPECT_LT(limit_of(small), kOfSeconds);
}

// Whoever spends 16 instructions on each product, one lane at a time, three times over.
TEST(InstructionLimit, LeavesRoomForTheSlowestOfALargeProblem) {
  Problem large;
  large.num_heads_q = large.num_heads_kv = 8;
  large.seqlen_q = large.seqlen_kv = 1024;
  large.head_dim = large.head_dim_v = 128;
  EXPECT_GE(limit_of(large), 16ULL * 3 * 8 * 1024 * 1024 * (128 + 128));
}

TEST(InstructionLimit, CountsWhatAProjectionMultiplies) {
  RequestHeader request{};
  request.operation = ATTEST_PROJECTION;
  request.tensor_count = 2;
  request.tensors[0].name = TensorName::x;
  request.tensors[1].name = TensorName::w;
  for (std::int64_t& extent : request.tensors[0].extent) extent = 1;
  for (std::int64_t& extent : request.tensors[1].extent) extent = 1;
  request.tensors[0].extent[2] = request.tensors[0].extent[3] = 1000;
  request.tensors[1].extent[2] = request.tensors[1].extent[3] = 1000;
  EXPECT_GE(instruction_limit(request), 48'000'000'000ULL);
}

TEST(InstructionLimit, OfTheLargestNumbersIsStillANumber) {
  Problem huge;
  huge.batch = huge.num_heads_q = huge.seqlen_q = huge.seqlen_kv = 1'000'000;
  huge.head_dim = huge.head_dim_v = 1'000'000;
  EXPECT_EQ(limit_of(huge), 1ULL << 62);
}

}  // namespace
}  // namespace attest
