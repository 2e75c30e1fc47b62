// The limit grows with the work, and a small problem's is used up within seconds.
#include "optimized/plugin/instruction_limit.hpp"

#include <gtest/gtest.h>

#include "optimized/plugin/abi.hpp"
#include "reference/problem.hpp"

namespace attest {
namespace {

std::uint64_t limit_of(const Problem& problem) {
  Request request{};
  request.operation = ATTEST_PREFILL;
  request.problem = abi_problem(problem);
  return instruction_limit(request);
}

constexpr std::uint64_t kOfSeconds = 1 << 28;  // at some 2^25 to 2^27 warp instructions a second

TEST(InstructionLimit, EndsAnEndlessKernelOfASmallProblemInSeconds) {
  Problem small;
  small.batch = small.query_heads = small.kv_heads = 2;
  small.queries = small.keys = 40;
  small.depth = small.v_depth = 64;
  EXPECT_LT(limit_of(small), kOfSeconds);
}

// Whoever spends 16 instructions on each product, one lane at a time, three times over.
TEST(InstructionLimit, LeavesRoomForTheSlowestOfALargeProblem) {
  Problem large;
  large.query_heads = large.kv_heads = 8;
  large.queries = large.keys = 1024;
  large.depth = large.v_depth = 128;
  EXPECT_GE(limit_of(large), 16ULL * 3 * 8 * 1024 * 1024 * (128 + 128));
}

TEST(InstructionLimit, CountsWhatAProjectionMultiplies) {
  Request request{};
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
  huge.batch = huge.query_heads = huge.queries = huge.keys = 1'000'000;
  huge.depth = huge.v_depth = 1'000'000;
  EXPECT_EQ(limit_of(huge), 1ULL << 62);
}

}  // namespace
}  // namespace attest
