// What a declared order adds to the order-free bound, where one number says it. That right kernels
// are not refused is soundness_test's business.
#include <gtest/gtest.h>

#include <cmath>

#include "reference/bound/testing/tally.hpp"
#include "reference/random_values.hpp"

namespace attest {
namespace {

// A tenth of a key is missing in the row sum of the LSE alone: less than two thousand additions
// may lose in some order, more than they lose block by block.
TEST(Running, AnLseIsJudgedByTheOrderOfItsRowSum) {
  const Problem p{.seqlen_kv = 2000, .head_dim = 16, .head_dim_v = 1, .softmax_scale = 0.25F};
  const Recipe recipe{.name = "blocks of 64", .kv_block = 64, .partial_row_sums = 4};
  std::mt19937_64 random(20);
  for (int round = 0; round < 20; ++round) {
    const Values values = random_values(p, random);
    Simulated found = simulate(p, values, recipe);
    const Acceptance any = acceptance(p, values, path_of(recipe), Strength::order_free);
    const Acceptance followed = acceptance(p, values, path_of(recipe), Strength::running);
    EXPECT_LT(4 * followed.lse.radius[0], any.lse.radius[0]);
    EXPECT_TRUE(followed.lse.accepts(found.lse.at(0), 0));
    found.lse.set(0, found.lse.at(0) + std::log1p(-0.1 / 2000));
    EXPECT_TRUE(any.lse.accepts(found.lse.at(0), 0));
    EXPECT_FALSE(followed.lse.accepts(found.lse.at(0), 0));
  }
}

}  // namespace
}  // namespace attest
