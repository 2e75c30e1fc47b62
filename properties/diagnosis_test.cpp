// Diagnosis: a path declared wrongly is named by what would be right, a Problem meant otherwise and
// a well-known mistake too, and a right answer is left in peace.
#include "properties/diagnosis.hpp"

#include <gtest/gtest.h>

#include <limits>

#include "properties/domains/domain.hpp"
#include "properties/excerpt.hpp"
#include "properties/fills.hpp"
#include "properties/rows.hpp"
#include "properties/wrong_answers.hpp"
#include "reference/model/model.hpp"
#include "reference/oracle/exact.hpp"
#include "reference/precision_text.hpp"
#include "reference/text.hpp"

namespace attest {
namespace {

/// An answer, and the question it is for.
struct Asked {
  Problem problem;
  Values values;
  Tensor o, lse;

  Asked(const Case& test_case, const std::vector<double>& o_numbers,
        const std::vector<double>& lse_numbers)
      : problem(test_case.problem),
        values(make_values(test_case)),
        o(problem.output,
          {problem.batch, problem.num_heads_q, problem.seqlen_q, problem.head_dim_v}),
        lse(Format::f32, {problem.batch, problem.num_heads_q, problem.seqlen_q, 1}) {
    for (Index n = 0; n < o.count(); ++n) o.set(n, o_numbers[static_cast<std::size_t>(n)]);
    for (Index n = 0; n < lse.count(); ++n) lse.set(n, lse_numbers[static_cast<std::size_t>(n)]);
  }
  Given given() const { return {&o, &lse}; }
};

/// What a kernel of `path` answers.
Asked modelled(const std::string& line, const std::string& path, Defect defect = Defect::none) {
  const Case c = parse_case(line);
  const Modelled m = model_attention(c.problem, make_values(c),
                                     parse_precision(path, c.problem.input), {.defect = defect});
  return {c, m.o, m.lse};
}

std::string remarks(const Asked& asked, const std::string& path) {
  const PrecisionPath declared = parse_precision(path, asked.problem.input);
  std::string text;
  for (const std::string& remark :
       diagnose(asked.problem, asked.values, declared,
                acceptance(asked.problem, asked.values, declared), asked.given())) {
    text += remark + "\n";
  }
  return text;
}

void expect_said(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "not said: " << part << "\nbut: " << text;
}

constexpr const char* kLong = "q=1x2x40x16 kv=1x150x16 in=bf16 out=bf16 causal seed=5";

TEST(Diagnosis, ARightAnswerIsLeftInPeace) {
  EXPECT_EQ(remarks(modelled(kLong, "fa2 kv_block=32"), "fa2 kv_block=32"), "");
  const char* const eight_bits =
      "q=1x2x40x16 kv=1x150x16 in=e4m3 out=bf16 cache=e4m3 scales=head causal seed=5";
  EXPECT_EQ(remarks(modelled(eight_bits, "fa3_fp8 kv_block=32"), "fa3_fp8 kv_block=32"), "");
}

TEST(Diagnosis, WrongDeclarationsAreNamedByWhatWouldBeRight) {
  const Asked asked = modelled(kLong, "fa2 kv_block=32");
  expect_said(remarks(asked, "fa2 kv_block=64"),
              "everything would be accepted if the path says kv_block=32");
  expect_said(remarks(asked, "fa2 kv_block=48"), "kv_block=32");
  expect_said(remarks(asked, "fa2 kv_block=32 row_sum_of_rounded_p"),
              "nothing of row_sum_of_rounded_p");
  expect_said(remarks(asked, "fa2 kv_block=32 p_format=f16"), "p_format=bf16");
  const Asked rising = modelled(kLong, "p_format=bf16 kv_block=32");
  expect_said(remarks(rising, "p_format=bf16 kv_block=32 kv_blocks_descending"),
              "nothing of kv_blocks_descending");
  expect_said(remarks(rising, "p_format=bf16 kv_block=64 kv_blocks_descending"),
              "kv_block=32 and nothing of kv_blocks_descending");
}

TEST(Diagnosis, ALossThatNoDeclarationExplainsIsCalledThat) {
  const std::string said =
      remarks(modelled(kLong, "fa2 kv_block=32", Defect::p_truncated), "fa2 kv_block=32");
  expect_said(said, "but none by the order-free bound");
  expect_said(said, "is P really rounded to bf16, in blocks of 32 keys, last block first?");
}

TEST(Diagnosis, CoarserArithmeticThanDeclaredIsNamed) {
  expect_said(remarks(modelled(kLong, "fa2 kv_block=32"), "f32"), "the path says p_format=bf16");
  // Where the first weights are few, their sum is off by more than any order explains.
  expect_said(remarks(modelled(kLong, "fa2 kv_block=32 row_sum_of_rounded_p"), "fa2 kv_block=32"),
              "everything would be accepted if the path says row_sum_of_rounded_p");
}

TEST(Diagnosis, WhatEagerFrameworksRoundIsNamed) {
  const std::string divided = "p_format=bf16 kv_block=160 normalize_before_cast";
  expect_said(remarks(modelled(kLong, divided), "p_format=bf16 kv_block=160"),
              "everything would be accepted if the path says normalize_before_cast");
  expect_said(remarks(modelled(kLong, divided), "f32"), "the path says p_format=bf16:");
  const std::string scored = "q=1x2x40x16 kv=1x150x16 in=bf16 out=bf16 seed=5 scale=2";
  expect_said(remarks(modelled(scored, "p_format=bf16 scores_format=bf16"), "p_format=bf16"),
              "everything would be accepted if the path says scores_format=bf16");
}

// A wider bound alone is no reason to name a path.
TEST(Diagnosis, APathThatIsMerelyWiderIsNotNamed) {
  const std::string line = "q=1x2x40x16 kv=1x150x16 in=bf16 out=f32 seed=5 scale=1";
  const std::string scores =
      remarks(modelled(line, "p_format=bf16 scores_format=f16"), "p_format=bf16");
  EXPECT_EQ(scores.find("row_sum_of_rounded_p"), std::string::npos) << scores;
  const std::string e4m3 = remarks(modelled(line, "p_format=e4m3"), "p_format=bf16");
  EXPECT_EQ(e4m3.find("row_sum_of_rounded_p"), std::string::npos) << e4m3;
  expect_said(e4m3, "p_format=e4m3");
}

TEST(Diagnosis, RowsInAnotherPlaceAreNamed) {
  const Asked right = modelled("q=1x3x9x8 kv=1x20x8 in=bf16 out=bf16 seed=3", "p_format=bf16");
  Asked heads = right, rows = right, nan = right;
  for (Index i = 0; i < 9; ++i) {
    for (Index c = 0; c < 8; ++c) {
      for (Index h = 0; h < 3; ++h) heads.o.set(0, h, i, c, right.o.at(0, (h + 1) % 3, i, c));
      rows.o.set(0, 1, i, c, right.o.at(0, 1, i == 8 ? 8 : i ^ 1, c));
      nan.o.set(0, 2, 4, c, std::numeric_limits<double>::quiet_NaN());
    }
  }
  expect_said(remarks(heads, "p_format=bf16"), "heads look permuted");
  expect_said(remarks(rows, "p_format=bf16"), "rows look permuted");
  expect_said(remarks(nan, "p_format=bf16"),
              "hold nothing but NaN, the first of them batch 0, head 2, row 4");
}

TEST(Diagnosis, ConventionsAreNamed) {
  // What was asked, what the other side took it for, and what is to be said.
  const char* const misunderstandings[][3] = {
      {"q=1x1x9x16 kv=1x12x16 causal", "q=1x1x9x16 kv=1x12x16", "nothing of causal"},
      {"q=1x1x9x16 kv=1x12x16", "q=1x1x9x16 kv=1x12x16 causal", "the problem says causal"},
      {"q=1x1x9x16 kv=1x12x16", "q=1x1x9x16 kv=1x12x16 scale=1", "scale=1:"},
      {"q=1x1x9x16 kv=1x12x16 scale=1", "q=1x1x9x16 kv=1x12x16", "scale=0.25 (1/sqrt(head_dim))"},
      {"q=1x1x9x16 kv=1x12x16 scale=0.25", "q=1x1x9x16 kv=1x12x16 scale=0.1732868",
       "(exp2 stands for exp)"},
      {"q=1x1x9x16 kv=1x12x16 causal window=3,0", "q=1x1x9x16 kv=1x12x16 causal", "no window"},
      {"q=1x1x9x16 kv=1x12x16 causal", "q=1x1x9x16 kv=1x12x16 causal align=top_left",
       "(other_alignment)"},
      {"q=1x1x9x16 kv=1x12x16", "q=1x1x9x16 kv=1x12x16 lse=two", "(other_lse_base)"},
      {"q=1x1x9x16 kv=1x12x16 softcap=2", "q=1x1x9x16 kv=1x12x16", "(ignores_softcap)"},
  };
  for (const auto& [asked, taken, said] : misunderstandings) {
    Case c = parse_case(asked);
    const Values values = make_values(c);
    const Truth truth = exact_attention(parse_problem(taken), values);
    expect_said(remarks(Asked(c, truth.o, truth.lse), "f32"), said);
  }
}

TEST(Diagnosis, WhatNothingExplainsIsWrong) {
  Asked asked = modelled(kLong, "fa2 kv_block=32");
  asked.o.set(7, asked.o.at(7) + 1);
  expect_said(remarks(asked, "fa2 kv_block=32"),
              "1 of 1360 numbers are refused by the order-free bound too, so whatever the order");
}

TEST(Diagnosis, MistakesAreRecognisedFromTheAnswer) {
  const Case c = parse_case("q=2x4x6x16 kv=2x9x16 in=bf16 out=bf16 seed=2");
  Problem shorter = c.problem;
  shorter.seqlens_kv = {8, 8};  // all rows see all keys: the last one is left out
  const Truth dropped = exact_attention(shorter, make_values(c));
  expect_said(remarks(Asked(c, dropped.o, dropped.lse), "p_format=bf16"),
              "this is what one gets when the last visible key is left out (drops_one_key)");
  const Truth truth = exact_attention(c.problem, make_values(c));
  const std::vector<double> zeros(truth.o.size());
  expect_said(remarks(Asked(c, zeros, truth.lse), "p_format=bf16"), "(answers_zero)");
  expect_said(remarks(modelled(kLong, "fa2 kv_block=32", Defect::key_dropped), "fa2 kv_block=32"),
              "(drops_one_key)");
}

// Whatever is asked, whatever was answered: a refusal is explained, and nothing else is.
TEST(Diagnosis, EveryRefusalGetsASentence) {
  int refused = 0, accepted = 0;
  for (std::uint64_t n = 0; n < 60; ++n) {
    const Case c = draw_case(n % 2 == 0 ? "oracle_agreement" : "decode_agreement", 9, n);
    const Index work = c.problem.batch * c.problem.num_heads_q * c.problem.seqlen_q *
                       c.problem.seqlen_kv * c.problem.head_dim;
    if (work > 1 << 20) continue;  // the same code, for longer
    const Truth truth = exact_attention(c.problem, make_values(c));
    std::vector<double> o = truth.o;
    for (std::size_t k = 0; k < o.size(); k += 1 + n) o[k] = n % 3 == 0 ? 0 : -o[k];
    const Asked asked(c, o, truth.lse);
    const PrecisionPath path{
        .p_format = Format::bf16, .keys_per_rescale = 4, .kv_block = 4, .split_size = kEvenSplits};
    const Acceptance bound = acceptance(asked.problem, asked.values, path);
    bool holds = true;
    for_each_row(c.problem, [&](Index b, Index h, Index i) {
      for (Index column = 0; column < c.problem.head_dim_v; ++column) {
        const Index flat = asked.o.offset(b, h, i, column);
        holds = holds && bound.o.accepts(asked.o.at(flat), static_cast<std::size_t>(flat));
      }
    });
    const auto said = diagnose(asked.problem, asked.values, path, bound, asked.given());
    if (holds) {
      ++accepted;
      EXPECT_TRUE(said.empty()) << print(c) << "\n" << said.front();
    } else {
      ++refused;
      EXPECT_FALSE(said.empty()) << print(c);
    }
    for (const std::string& remark : said) EXPECT_GT(remark.size(), 20U) << print(c);
  }
  EXPECT_GT(refused, 10);
  EXPECT_GT(accepted, 0);
}

TEST(Excerpt, RowsMeanWhatTheyMeantInTheWhole) {
  for (const char* line :
       {"q=2x4x7x8 kv=2x9x8 causal window=4,inf bias alibi sinks mask kv_len=9,6 q_len=7,4",
        "q=2x4x7x8 kv=2x9x8 causal align=top_left alibi in=bf16 out=bf16 softcap=3",
        "q=1x4x5x8 kv=2x9x8 in=bf16 out=bf16 cache=e4m3 scales=token page=4 order=1",
        "q=1x4x5x8 kv=2x9x8 in=bf16 out=bf16 cache=i8 scales=head"}) {
    const Case c = parse_case(line);
    const Values values = make_values(c);
    const Truth whole = exact_attention(c.problem, values);
    const Asked asked(c, whole.o, whole.lse);
    for (Index b = 0; b < c.problem.batch; ++b) {
      const Index rows = query_length(c.problem, b);
      const bool from_end = c.problem.alignment == Alignment::bottom_right;
      const RowsOfHead some{b, 3, from_end ? rows - 3 : 0, from_end ? rows : 3};
      const Excerpt part = excerpt(c.problem, values, asked.given(), some);
      EXPECT_EQ(invalidity(part.problem), "") << line;
      const Truth truth = exact_attention(part.problem, part.values);
      for (std::size_t n = 0; n < truth.o.size(); ++n) {
        Tensor rounded(c.problem.output, {1, 1, 1, 1});
        rounded.set(0, truth.o[n]);
        EXPECT_EQ(rounded.at(0), part.o->at(static_cast<Index>(n))) << line;
      }
      for (std::size_t n = 0; n < truth.lse.size(); ++n) {
        EXPECT_EQ(static_cast<float>(truth.lse[n]), part.lse->at(static_cast<Index>(n))) << line;
      }
    }
  }
}

}  // namespace
}  // namespace attest
