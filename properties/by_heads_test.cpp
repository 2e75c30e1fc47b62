// Head by head, the numbers are those of the whole, whatever is asked and declared.
#include "properties/by_heads.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "properties/domains/domain.hpp"
#include "properties/fills.hpp"
#include "properties/row_sample.hpp"
#include "reference/precision_text.hpp"
#include "reference/text.hpp"

namespace attest {
namespace {

bool same_bits(const std::vector<double>& a, const std::vector<double>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0;
}

void expect_same(const Case& c, const PrecisionPath& path, Strength at_most) {
  const Values values = make_values(c);
  const Acceptance whole = acceptance(c.problem, values, path, at_most);
  std::atomic<Index> done = 0;
  const Acceptance heads = acceptance_by_heads(c.problem, values, path, at_most, {}, &done);
  const std::string what = print(c) + " " + print(path);
  EXPECT_EQ(done, c.problem.batch * c.problem.num_heads_q) << what;
  EXPECT_EQ(heads.o.format, whole.o.format) << what;
  EXPECT_TRUE(same_bits(heads.o.centre, whole.o.centre)) << what;
  EXPECT_TRUE(same_bits(heads.o.radius, whole.o.radius)) << what;
  EXPECT_TRUE(same_bits(heads.lse.centre, whole.lse.centre)) << what;
  EXPECT_TRUE(same_bits(heads.lse.radius, whole.lse.radius)) << what;
  EXPECT_EQ(heads.strength, whole.strength) << what;
}

TEST(ByHeads, TheNumbersAreThoseOfTheWhole) {
  const char* const paths[] = {
      "f32", "p_format=bf16 kv_block=4 kv_blocks_descending in_order tensor_step=8",
      "p_format=bf16 kv_block=4 split_size=even interleaved_accumulators=2",
      "p_format=f16 row_sum_of_rounded_p", "kv_block=8 split_size=power_of_two partial_row_sums=4"};
  for (std::uint64_t n = 0; n < 120; ++n) {
    const Case c = draw_case(n % 2 == 0 ? "oracle_agreement" : "decode_agreement", 11, n);
    const Index work = c.problem.batch * c.problem.num_heads_q * c.problem.seqlen_q *
                       c.problem.seqlen_kv * c.problem.head_dim;
    if (work > 1 << 19) continue;  // the same code, for longer
    expect_same(c, parse_precision(paths[n % std::size(paths)], c.problem.input),
                n % 3 == 0 ? Strength::order_free : Strength::quantised);
  }
}

TEST(ByHeads, OfASampleTheNumbersAreThoseOfTheWhole) {
  const Case c = parse_case("q=2x4x33x8 kv=2x70x8 causal q_len=33,7 fill=normal seed=4");
  const Values values = make_values(c);
  const PrecisionPath path = parse_precision("p_format=bf16 kv_block=16 in_order", c.problem.input);
  const Acceptance whole = acceptance(c.problem, values, path);
  const std::vector<bool> wanted = rows_in({.rows = 5, .heads = 3, .seed = 2}, c.problem);
  const Acceptance some = acceptance_by_heads(c.problem, values, path, Strength::quantised, wanted);
  Index rows = 0;
  for (std::size_t at = 0; at < wanted.size(); ++at) {
    if (wanted[at]) ++rows;
    for (std::size_t n = at * 8; n < at * 8 + 8; ++n) {
      EXPECT_EQ(some.o.radius[n], wanted[at] ? whole.o.radius[n] : INFINITY);
      if (wanted[at]) EXPECT_EQ(some.o.centre[n], whole.o.centre[n]);
    }
    EXPECT_EQ(some.lse.radius[at], wanted[at] ? whole.lse.radius[at] : INFINITY);
  }
  EXPECT_EQ(rows, 15);
}

TEST(RowSample, TakesWhatIsAskedForAndOtherRowsByAnotherSeed) {
  const Problem p = parse_case("q=3x4x33x8 kv=2x70x8 q_len=33,0,2").problem;
  EXPECT_TRUE(rows_in({}, p).empty()) << "the whole";
  const auto count = [](const std::vector<bool>& rows) {
    return std::count(rows.begin(), rows.end(), true);
  };
  EXPECT_EQ(count(rows_in({.rows = 1000}, p)), 4 * 35) << "all that exist";
  EXPECT_EQ(count(rows_in({.rows = 5}, p)), 4 * (5 + 2));
  EXPECT_EQ(count(rows_in({.heads = 8}, p)), 4 * 35) << "heads without rows are not drawn";
  EXPECT_EQ(rows_in({.rows = 5, .seed = 7}, p), rows_in({.rows = 5, .seed = 7}, p));
  EXPECT_NE(rows_in({.rows = 5, .seed = 7}, p), rows_in({.rows = 5, .seed = 8}, p));
  EXPECT_NE(rows_in({.heads = 3, .seed = 7}, p), rows_in({.heads = 3, .seed = 8}, p));
}

void expect_same(const Truth& a, const Truth& b, const std::string& what) {
  EXPECT_EQ(a.extent, b.extent) << what;
  EXPECT_TRUE(same_bits(a.o, b.o)) << what;
  EXPECT_TRUE(same_bits(a.lse, b.lse)) << what;
  EXPECT_TRUE(same_bits(a.o_tail, b.o_tail)) << what;
  EXPECT_TRUE(same_bits(a.lse_tail, b.lse_tail)) << what;
}

TEST(ByHeads, TheTruthIsThatOfTheWhole) {
  for (const char* line :
       {"q=3x4x7x8 kv=2x9x8 causal q_len=7,0,4 kv_len=9,6,0 fill=sink_token",
        "q=2x4x7x8 kv=2x9x8 causal align=top_left empty=nan kv_len=2,9 mask bias alibi sinks",
        "q=2x4x3x8 kv=2x16x8 in=bf16 out=bf16 lse=two splits=3 kv_len=16,7 seed=9"}) {
    const Case c = parse_case(line);
    const Values values = make_values(c);
    std::atomic<Index> done = 0;
    const Certified heads = certified_by_heads(c.problem, values, &done);
    EXPECT_EQ(done, c.problem.batch * c.problem.num_heads_q) << line;
    const Certified whole = certified_attention(c.problem, values);
    expect_same(heads.truth, whole.truth, line);
    EXPECT_TRUE(same_bits(heads.o_radius, whole.o_radius)) << line;
    EXPECT_TRUE(same_bits(heads.lse_radius, whole.lse_radius)) << line;
    EXPECT_EQ(heads.tier, whole.tier) << line;
    const ExactTruth exact = exact_by_heads(c.problem, values, Digits::fifty);
    expect_same(exact.truth, exact_attention(c.problem, values, Digits::fifty), line);
    EXPECT_EQ(exact.digits, certified_digits(c.problem, values)) << line;
  }
}

TEST(ByHeads, LengthsAndEmptyRowsToo) {
  for (const char* line :
       {"q=3x4x7x8 kv=2x9x8 causal q_len=7,0,4 kv_len=9,6,0",
        "q=2x4x7x8 kv=2x9x8 causal align=top_left empty=nan kv_len=2,9 mask bias alibi sinks",
        "q=2x4x1x8 kv=2x64x8 in=bf16 out=bf16 splits=3 kv_len=64,17"}) {
    expect_same(parse_case(line), parse_precision("p_format=bf16 kv_block=4 split_size=even"),
                Strength::quantised);
  }
}

}  // namespace
}  // namespace attest
