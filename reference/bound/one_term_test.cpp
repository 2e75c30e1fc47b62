// Where one term of B2 or B3 carries most of the error, no right kernel is refused: without the
// term, it is. The largest error / bound is printed beside.
#include "reference/bound/testing/one_term.hpp"

#include <gtest/gtest.h>

#include <cstdio>

#include "reference/bound/testing/tally.hpp"

namespace attest {
namespace {

TEST(OneTerm, NoRightKernelIsRefusedWhereItCarriesTheError) {
  std::printf("%-44s %8s %8s %8s %8s\n", "largest error / bound", "o", "o run", "o quant", "lse");
  OneTerms terms;
  add_terms_of_weights(terms);
  add_terms_of_sums(terms);
  add_terms_of_logits(terms);
  add_terms_of_forms(terms);
  std::uint64_t seed = 0;
  for (const OneTerm& term : terms) {
    Draws draws(++seed);
    Tally all;
    for (int round = 0; round < term.rounds; ++round) {
      const auto [drawn, values] = term.draw(draws);
      Problem p = drawn;
      p.num_splits = term.recipe.num_splits;
      const Simulated found = simulate(p, values, term.recipe);
      for (Strength at_most : {Strength::order_free, Strength::running, Strength::quantised}) {
        Tally once;
        judge(p, acceptance(p, values, path_of(term.recipe), at_most), found, once);
        ASSERT_EQ(once.refused + once.refused_lse, 0)
            << term.name << " by " << kStrengthNames[static_cast<std::size_t>(at_most)]
            << ", round " << round;
        all.add(once);
      }
    }
    std::printf("%-44s %8.4f %8.4f %8.4f %8.4f\n", term.name.c_str(), all.o_ratio[0],
                all.o_ratio[1], all.o_ratio[2], all.lse_ratio);
    EXPECT_EQ(all.unjudged, 0) << term.name;
  }
}

}  // namespace
}  // namespace attest
