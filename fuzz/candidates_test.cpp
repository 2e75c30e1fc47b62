// What every direction owes: legal neighbours that differ, and none at the default.
#include "fuzz/candidates.hpp"

#include <gtest/gtest.h>

#include <set>

#include "properties/domains/domain.hpp"
#include "reference/text.hpp"

namespace attest {
namespace {

TEST(Candidates, AreLegalAndDiffer) {
  for (std::uint64_t index = 0; index < 400; ++index) {
    const Case from = draw_case(index % 2 == 0 ? "first" : "quantised_path", 5, index);
    for (const ShrinkDirection& direction : shrink_directions()) {
      for (const Case& smaller : direction.smaller(from)) {
        EXPECT_NE(smaller, from) << direction.name;
        EXPECT_EQ(invalidity(smaller.problem), "") << direction.name << ": " << print(smaller);
      }
    }
  }
}

TEST(Candidates, TheDefaultHasNone) {
  for (const ShrinkDirection& direction : shrink_directions()) {
    EXPECT_TRUE(direction.smaller(Case{}).empty()) << direction.name;
  }
}

// Whatever a cache has can be left out, one thing after the other.
TEST(Candidates, CachesBecomePlain) {
  for (const char* line : {"q=1x1x1x4 kv=1x9x4 cache=i8 scales=token rope=pairs page=4 order=3",
                           "q=1x1x2x4 kv=1x9x4 window=2,inf ring=9 cache=bf16"}) {
    Case from = parse_case(line);
    for (bool smaller = true; smaller;) {
      smaller = false;
      for (const ShrinkDirection& direction : shrink_directions()) {
        const auto candidates = direction.smaller(from);
        if (candidates.empty() || direction.name == "without features") continue;
        from = candidates.back();
        smaller = true;
      }
    }
    EXPECT_EQ(from, Case{}) << print(from);
  }
}

TEST(Candidates, DirectionsHaveNamesOfTheirOwn) {
  std::set<std::string_view> names;
  for (const ShrinkDirection& direction : shrink_directions()) {
    EXPECT_TRUE(names.insert(direction.name).second) << direction.name;
  }
}

TEST(Candidates, BoldestFirst) {
  Case from;
  from.problem.head_dim_v = 17;
  for (const ShrinkDirection& direction : shrink_directions()) {
    if (direction.name != "head_dim_v") continue;
    std::vector<Index> steps;
    for (const Case& smaller : direction.smaller(from)) steps.push_back(smaller.problem.head_dim_v);
    EXPECT_EQ(steps, (std::vector<Index>{1, 9, 13, 15, 16}));
  }
}

TEST(Candidates, ABatchCanLoseAnyOfItsEntries) {
  Case from;
  from.problem.batch = 3;
  from.problem.seqlen_kv = 9;
  from.problem.seqlens_kv = {7, 8, 9};
  std::set<std::vector<Index>> left;
  for (const ShrinkDirection& direction : shrink_directions()) {
    if (direction.name != "batch") continue;
    for (const Case& smaller : direction.smaller(from)) left.insert(smaller.problem.seqlens_kv);
  }
  for (const Index length : {7, 8, 9}) EXPECT_TRUE(left.contains({length})) << length;
}

}  // namespace
}  // namespace attest
