// Lines survive the round trip, and every wrong line is refused with its column and a way out.
#include "reference/text.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "reference/case_words.hpp"
#include "reference/testing/random_problem.hpp"
#include "reference/validity.hpp"

namespace attest {
namespace {

std::string refusal(std::string_view line) {
  try {
    parse_case(line);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

void expect_refused(std::string_view line, std::initializer_list<std::string_view> said) {
  const std::string message = refusal(line);
  for (std::string_view part : said) {
    EXPECT_NE(message.find(part), std::string::npos) << line << "\n  gave: " << message;
  }
}

TEST(CaseText, TheDefaultIsTheSmallestLine) {
  EXPECT_EQ(print(Problem{}), "q=1x1x1x1 kv=1x1x1");
  EXPECT_EQ(print(Case{}), "q=1x1x1x1 kv=1x1x1");
  EXPECT_EQ(parse_case("q=1x1x1x1"), Case{});
  EXPECT_EQ(parse_problem("kv=1x1x1"), Problem{});
}

TEST(CaseText, EveryFieldHasItsPlace) {
  Case c;
  c.problem = {.batch = 2,
               .num_heads_q = 4,
               .num_heads_kv = 2,
               .seqlen_q = 5,
               .seqlen_kv = 7,
               .head_dim = 64,
               .head_dim_v = 32,
               .input = Format::bf16,
               .output = Format::f16,
               .softmax_scale = 0.1F,
               .softcap = 30.5,
               .causal = true,
               .alignment = Alignment::top_left,
               .window_left = 3,
               .window_right = kUnbounded,
               .bias = true,
               .alibi = true,
               .sinks = true,
               .mask = true,
               .seqlens_q = {5, 0},
               .seqlens_kv = {7, 1},
               .empty_row = EmptyRow::nan,
               .lse_base = LogBase::two,
               .layout = Layout::bthd,
               .strided = (1U << kStridedWords) - 1,
               .spare_slots = 3,
               .num_splits = 4,
               .chunk = 2,
               .cache = Format::i8,
               .scales = Scales::token,
               .page_size = 16,
               .page_order = 5,
               .rope = Rope::pairs};
  c.fill = "needle";
  c.seed = 18446744073709551615U;
  const std::string line =
      "q=2x4x5x64 kv=2x7x32 in=bf16 out=f16 scale=0.1 softcap=30.5 causal align=top_left "
      "window=3,inf bias alibi sinks mask q_len=5,0 kv_len=7,1 empty=nan lse=two layout=bthd "
      "strided=q,k,v,o,lse,bias,mask,scales,table,fresh,far spare=3 splits=4 chunk=2 cache=i8 "
      "scales=token page=16 order=5 rope=pairs fill=needle "
      "seed=18446744073709551615";
  EXPECT_EQ(print(c), line);
  EXPECT_EQ(parse_case(line), c);
  EXPECT_EQ(parse_problem(print(c.problem)), c.problem);
}

// What people are told of words is what the parser makes of them.
TEST(CaseText, TheListOfWordsIsTrue) {
  for (const CaseWord& word : case_words()) {
    EXPECT_FALSE(word.what.empty()) << word.name;
    if (word.form == word.name) {
      EXPECT_EQ(print(parse_case(word.name)), "q=1x1x1x1 kv=1x1x1 " + std::string(word.name));
      continue;
    }
    EXPECT_TRUE(word.form.starts_with(std::string(word.name) + "=")) << word.form;
    // A value that stands for itself changes nothing.
    const std::string given = std::string(word.name) + "=" + std::string(word.left_out);
    if (given.find(' ') == std::string::npos && word.left_out != "all")
      EXPECT_EQ(parse_case(given), parse_case("q=1x1x1x1 kv=1x1x1")) << given;
    // Every value that is named is legal; an 8-bit cache is what scales need, pairs an even
    // head_dim.
    std::string value = std::string(word.form.substr(word.name.size() + 1));
    if (value.find('|') == std::string::npos) continue;
    for (std::size_t start = 0; start < value.size();) {
      const std::size_t stop = std::min(value.find('|', start), value.size());
      const std::string one = std::string(word.name) + "=" + value.substr(start, stop - start);
      const std::string line = "q=1x1x1x2 " + one + (word.name == "scales" ? " cache=e4m3" : "");
      EXPECT_NO_THROW(parse_case(line)) << line;
      start = stop + 1;
    }
  }
  std::string all;
  for (const CaseWord& word : case_words()) all += fmt::format(" {}", word.name);
  EXPECT_EQ(
      all,
      " q kv in out scale softcap causal align window bias alibi sinks mask q_len kv_len empty "
      "empty_lse lse layout strided spare splits chunk cache scales page order ring rope fill "
      "seed");
}

TEST(CaseText, OrderAndBlanksAreFree) {
  EXPECT_EQ(parse_case("  causal\tkv=1x2x3   scale=2 q=1x1x2x9 \r\n"),
            parse_case("q=1x1x2x9 kv=1x2x3 scale=2 causal"));
}

TEST(CaseText, AScaleIsPrintedOnlyWhenItIsNotTheDefaultOfTheDepth) {
  Problem p;
  p.head_dim = 64;
  EXPECT_EQ(print(p), "q=1x1x1x64 kv=1x1x1 scale=1");
  p.softmax_scale = default_scale(64);
  EXPECT_EQ(print(p), "q=1x1x1x64 kv=1x1x1");
  EXPECT_EQ(parse_problem("scale=1 q=1x1x1x64").softmax_scale, 1.0F);
  EXPECT_EQ(parse_problem("q=1x1x1x64").softmax_scale, 0.125F);
  for (float scale :
       {std::numeric_limits<float>::denorm_min(), 3.4028235e38F, -0.3F, 0.0F, 1e-7F}) {
    p.softmax_scale = scale;
    EXPECT_EQ(parse_problem(print(p)).softmax_scale, scale);
  }
}

TEST(CaseText, OtherSpellingsAreReadAndNotPrinted) {
  const std::string line = "q=2x1x4x64 kv=1x9x64 scale=3 q_len=1,4 kv_len=9,2 splits=2 page=4";
  EXPECT_EQ(print(parse_problem("q=2x1x4x64 kv=1x9x64 softmax_scale=3 seqlens_q=1,4 "
                                "seqlens_kv=9,2 num_splits=2 page_size=4")),
            line);
  EXPECT_EQ(print(parse_problem(line)), line);
  expect_refused("q=1x1x1x1 page=4 page_size=4", {"column 18", "'page' stands here a second time"});
}

TEST(CaseText, RandomProblemsSurviveTheRoundTrip) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 20000; ++i) {
    Case c;
    c.problem = random_problem(random, 1 + static_cast<Index>(random() % 300));
    c.seed = random() >> (random() % 64);
    if (i % 3 == 0) c.fill = "rising_maxima";
    if (i % 2 == 0 && c.problem.strided != 0) {
      c.problem.strided |= 1U << static_cast<unsigned>(Strided::far);
    }
    ASSERT_EQ(invalidity(c.problem), "") << print(c);
    ASSERT_EQ(parse_case(print(c)), c) << print(c);
    ASSERT_EQ(parse_problem(print(c.problem)), c.problem) << print(c.problem);
  }
}

// All Problems whose extents are at most 2, with every flag, every name and a few numbers: a mixed
// radix counter. Illegal ones must be refused with the reason that invalidity gives.
TEST(CaseText, EverySmallProblemSurvivesTheRoundTripOrIsRefused) {
  Index legal = 0, illegal = 0;
  for (unsigned shape = 0; shape < 2187; ++shape) {  // 3^7: extents 0, 1, 2
    unsigned rest = shape;
    const auto digit = [&] {
      const Index value = rest % 3;
      rest /= 3;
      return value;
    };
    Problem p;
    for (Index* extent : {&p.batch, &p.num_heads_q, &p.num_heads_kv, &p.seqlen_q, &p.seqlen_kv,
                          &p.head_dim, &p.head_dim_v}) {
      *extent = digit();
    }
    p.softmax_scale = p.head_dim > 0 ? default_scale(p.head_dim) : 1.0F;
    for (unsigned flags = 0; flags < 256; ++flags) {
      p.causal = (flags & 1) != 0;
      p.alignment = (flags & 2) != 0 ? Alignment::top_left : Alignment::bottom_right;
      p.bias = (flags & 4) != 0;
      p.alibi = (flags & 8) != 0;
      p.sinks = (flags & 16) != 0;
      p.mask = (flags & 32) != 0;
      p.empty_row = (flags & 64) != 0 ? EmptyRow::nan : EmptyRow::zero;
      p.window_left = (flags & 128) != 0 ? 0 : kUnbounded;
      p.lse_base = (flags & 4) != 0 ? LogBase::two : LogBase::e;
      p.layout = (flags & 8) != 0 ? Layout::bthd : Layout::bhtd;
      const std::string why = invalidity(p);
      if (why.empty()) {
        ++legal;
        ASSERT_EQ(parse_problem(print(p)), p);
      } else {
        ++illegal;
        ASSERT_NE(refusal(print(p)).find(why), std::string::npos) << print(p);
      }
    }
  }
  // 2 * 2 * 2 * 3 * 2 choices of the free extents times the 3 (num_heads_q, num_heads_kv) that
  // divide.
  EXPECT_EQ(legal, 2 * 2 * 3 * 2 * 2 * 3 * 256);
  EXPECT_EQ(illegal, 2187 * 256 - legal);
}

TEST(CaseText, OnlyATensorWithGapsCanHaveFarOnes) {
  expect_refused("q=2x1x1x1 strided=far", {"column 11", "name a tensor"});
  Problem shrunk = parse_problem("q=2x1x1x1 strided=q,far");
  shrunk.strided &= ~(1U << static_cast<unsigned>(Strided::q));
  put_right(shrunk, shrunk);
  EXPECT_EQ(shrunk.strided, 0U);
}

TEST(CaseText, WrongLinesNameTheColumnAndAWayOut) {
  expect_refused("", {"column 1", "empty", "q=1x1x1x1 kv=1x1x1"});
  expect_refused("   ", {"column 1", "empty"});
  expect_refused("q=2x4x5",
                 {"column 3", "'2x4x5' has 3 numbers", "q takes 4", "BATCHxNUM_HEADS_Q"});
  expect_refused("q=1x1x1x1 windw=1,2",
                 {"column 11", "unknown key 'windw'", "did you mean 'window'"});
  expect_refused("q=1x1x1x1 in=fp16", {"column 14", "unknown name 'fp16'", "'f16'", "bf16"});
  expect_refused("align=bottom", {"column 7", "did you mean 'bottom_right'"});
  expect_refused("causal=1", {"column 1", "flag"});
  expect_refused("softcap", {"column 1", "no value", "softcap=NUMBER"});
  expect_refused("q=1x1x1x1 q=1x1x1x1", {"column 11", "second time", "column 1"});
  expect_refused("causal kv=1x1x1 causal", {"column 17", "second time"});
  expect_refused("window=3", {"column 8", "no comma"});
  expect_refused("window=3,-1", {"column 10", "negative", "inf"});
  expect_refused("window=3,", {"column 10", "'' is not a number"});
  expect_refused("q=1x1x1x99999999999999999999", {"column 9", "out of range"});
  expect_refused("q=1x1x1x1.5", {"column 9", "'1.5' is not a number"});
  expect_refused("q=1x1x1x+1", {"column 9", "not a number"});
  expect_refused("scale=1e99", {"column 7", "out of range"});
  expect_refused("scale=abc", {"column 7", "not a number"});
  expect_refused("seed=-1", {"column 6", "not a number"});
  expect_refused("fill=Normal", {"column 6", "name of a fill"});
  expect_refused("fill=", {"column 6", "name of a fill"});
  expect_refused("=3", {"column 1", "unknown key ''"});
  expect_refused(std::string_view("q=1x1x1x1\0 causal", 17), {"column 9", "\\x00"});
  expect_refused("q=1x1x1x1 \xff\xfe", {"column 11", "\\xff\\xfe"});
  expect_refused("q=1x1x1x1\ncausal", {"column 9", "\\x0a"});
  EXPECT_THROW(parse_problem("q=1x1x1x1 seed=3"), Error);
}

TEST(CaseText, ImpossibleProblemsAreRefusedWithTheColumnOfTheirKey) {
  expect_refused("q=1x4x1x1 kv=3x1x1",
                 {"column 11", "num_heads_kv 3 does not divide num_heads_q 4"});
  expect_refused("q=0x1x1x1", {"column 1", "batch is 0", "at least 1"});
  expect_refused("kv=1x-1x1", {"column 1", "keys is -1", "at least 0"});
  expect_refused("q=1x1x0x1", {"queries is 0"});
  expect_refused("q=1x1x1x1 out=e4m3", {"column 11", "e4m3 cannot be an output"});
  expect_refused("scale=nan", {"column 1", "scale is not finite"});
  expect_refused("softcap=-1", {"softcap must be finite and not negative"});
  expect_refused("softcap=inf", {"softcap must be finite"});
  expect_refused("q=2x1x1x1 kv_len=1", {"column 11", "1 entries; batch is 2"});
  expect_refused("q=2x1x3x1 q_len=3,4", {"column 11", "holds 4", "queries = 3"});
  expect_refused("kv_len=-1", {"holds -1"});
  expect_refused("spare=-1", {"spare_slots is -1"});
  expect_refused("splits=0", {"splits is 0"});
  expect_refused("chunk=0", {"chunk is 0"});
  expect_refused("splits=65537", {"column 1", "splits is 65537", "at most 65536"});
  expect_refused("chunk=1000000000000", {"column 1", "chunk is 1000000000000", "at most 65536"});
  expect_refused("q=65536x65536x1x1", {"column 1", "2^28 elements", "largest is q"});
  expect_refused("q=1x1x1x1000000000 kv=1x1x1", {"column 1", "2^28", "largest is q"});
  expect_refused("q=2147483648x1x1x1", {"2^28"});
  expect_refused("kv=1x9223372036854775807x1 spare=9223372036854775807", {"2^28"});
  expect_refused("spare=9223372036854775807", {"column 1", "2^28", "largest is k"});
  expect_refused("q=1x1x65536x1 kv=1x65536x1 bias", {"column 28", "2^28", "largest is bias"});
  expect_refused("q=1x1x65536x1 kv=1x65536x1 mask", {"column 28", "2^28", "largest is mask"});
  expect_refused("q=1x64x64x1 kv=1x1x2 splits=65536", {"column 22", "2^28", "all splits"});
  expect_refused("q=1x64x1x128 kv=64x1x1 chunk=65536", {"column 24", "2^28", "one chunk of k"});
  // q and o of 2^27 each leave no room for k; with one query head less in 2^7 they do.
  expect_refused("q=1x128x1048576x1 kv=1x1x1", {"2^28"});
  EXPECT_EQ(refusal("q=1x127x1048576x1 kv=1x1x1"), "accepted");
  EXPECT_EQ(refusal("splits=65536 chunk=65536"), "accepted");
  EXPECT_EQ(refusal("q=1x1x65536x1 kv=1x65536x1"), "accepted");
  EXPECT_EQ(refusal("q=1x1x1x1 kv=1x0x1"), "accepted");
}

TEST(CaseText, HostileLinesAreRefusedQuickly) {
  const std::string million(1000000, 'q');
  expect_refused(million, {"column 1", "unknown key"});
  EXPECT_LT(refusal(million).size(), 1000U);
  std::string list = "kv_len=1";
  for (int i = 0; i < 400000; ++i) list += ",1";
  expect_refused(list, {"400001 entries"});
  expect_refused("q=" + std::string(1000000, 'x'), {"column 3", "not a number"});
  expect_refused(std::string(1000000, ' ') + "x", {"column 1000001"});
}

TEST(Nearest, FindsTypingErrorsAndAbbreviations) {
  constexpr std::array<std::string_view, 4> kNames{"causal", "window", "softcap", "bottom_right"};
  EXPECT_EQ(nearest("cuasal", kNames), "causal");
  EXPECT_EQ(nearest("windows", kNames), "window");
  EXPECT_EQ(nearest("soft", kNames), "softcap");
  EXPECT_EQ(nearest("bottom", kNames), "bottom_right");
  EXPECT_EQ(nearest("zebra", kNames), "");
  EXPECT_EQ(nearest("", kNames), "");
  EXPECT_EQ(nearest(std::string(100000, 'w'), kNames), "");
}

// f is the nearest float to 1/sqrt(d) iff 1/d lies between the squares of the midpoints around f.
// With f = n 2^-e, a midpoint is (2n +- 1) 2^-(e+1), and everything is an integer.
TEST(DefaultScale, IsCorrectlyRounded) {
  for (Index head_dim = 1; head_dim <= (Index{1} << 20); ++head_dim) {
    const float f = default_scale(head_dim);
    int exponent = 0;
    const auto n = static_cast<__int128>(std::ldexp(std::frexp(f, &exponent), 24));
    const int shift = 2 * (24 - exponent + 1);  // (2n +- 1)^2 d against 2^shift
    ASSERT_LT(shift, 126);
    const __int128 one = static_cast<__int128>(1) << shift;
    ASSERT_LE((2 * n - 1) * (2 * n - 1) * head_dim, one) << head_dim;
    ASSERT_GE((2 * n + 1) * (2 * n + 1) * head_dim, one) << head_dim;
  }
}

}  // namespace
}  // namespace attest
