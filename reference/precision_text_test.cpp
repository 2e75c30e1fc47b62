// Precision lines survive the round trip, every wrong one is refused with its column and a way out,
// and the known paths are what their sources say.
#include "reference/precision_text.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <set>

namespace attest {
namespace {

std::string refusal(std::string_view line, Format input = Format::bf16) {
  try {
    parse_precision(line, input);
  } catch (const Error& error) {
    return error.what();
  }
  return "accepted";
}

void expect_refused(std::string_view line, std::initializer_list<std::string_view> said,
                    Format input = Format::bf16) {
  const std::string message = refusal(line, input);
  for (const std::string_view part : said) {
    EXPECT_NE(message.find(part), std::string::npos) << line << "\n  gave: " << message;
  }
}

TEST(PrecisionText, TheDefaultIsTheSmallestLine) {
  EXPECT_EQ(print(PrecisionPath{}), "p_format=f32");
  EXPECT_EQ(parse_precision("p_format=f32"), PrecisionPath{});
  EXPECT_EQ(parse_precision("tensor_step=0"), PrecisionPath{});
}

TEST(PrecisionText, EveryFieldHasItsPlace) {
  const PrecisionPath path{.p_format = Format::bf16,
                           .exp_error = 0.1,
                           .log_error = 0x1p-23,
                           .tanh_error = 0.25,
                           .division_error = 1e-7,
                           .key_block = 16,
                           .tensor_step = 8,
                           .sums_cast = true,
                           .scales_in_p = true,
                           .lazy = 8,
                           .p_shift = -0.5,
                           .block = 64,
                           .streams = 2,
                           .falling = true,
                           .part = kPowerOfTwoParts,
                           .in_order = true,
                           .sum_lanes = 4,
                           .scores_format = Format::f16};
  const std::string line =
      "p_format=bf16 exp_error=0.1 log_error=1.1920928955078125e-07 tanh_error=0.25 "
      "division_error=1e-07 key_block=16 tensor_step=8 sums_cast scales_in_p lazy=8 p_shift=-0.5 "
      "block=64 streams=2 falling part=power_of_two in_order sum_lanes=4 scores_format=f16";
  EXPECT_EQ(print(path), line);
  EXPECT_EQ(parse_precision(line), path);
  std::set<std::string_view> names;
  // This one does not go with sums_cast, and the text says so.
  PrecisionPath divided = path;
  divided.normalize_before_cast = true;
  EXPECT_NE(precision_invalidity(divided).find("sums_cast"), std::string::npos);
  divided.sums_cast = false;
  EXPECT_EQ(parse_precision(print(divided)), divided);
  for (const PrecisionField& field : precision_fields()) {
    if (field.name == "normalize_before_cast") continue;
    EXPECT_NE(line.find(field.name), std::string::npos) << field.name;
    EXPECT_FALSE(field.what.empty());
    names.insert(field.name);
  }
  EXPECT_EQ(names.size() + 1, precision_fields().size());
}

TEST(PrecisionText, OrderAndBlanksAreFree) {
  EXPECT_EQ(parse_precision(" falling\tblock=8  p_format=f16 \r\n"),
            parse_precision("p_format=f16 block=8 falling"));
}

TEST(PrecisionText, ABlockIsTheLeastDistanceOfRescalesUnlessSaidOtherwise) {
  EXPECT_EQ(parse_precision("block=64").key_block, 64);
  EXPECT_EQ(parse_precision("block=64 key_block=1").key_block, 1);
  EXPECT_EQ(parse_precision("key_block=1 block=64").key_block, 1);
  EXPECT_EQ(print(PrecisionPath{.block = 64}), "p_format=f32 key_block=1 block=64");
  EXPECT_EQ(print(PrecisionPath{.key_block = 64, .block = 64}), "p_format=f32 block=64");
}

TEST(PrecisionText, RandomPathsSurviveTheRoundTrip) {
  std::mt19937_64 random(5);
  const auto flip = [&] { return random() % 2 == 0; };
  const auto count = [&](Index least) {
    return flip() ? least : least + static_cast<Index>(random() >> (2 + random() % 60));
  };
  const auto error = [&] {
    return flip() ? 0 : std::ldexp(1.0, -static_cast<int>(random() % 200));
  };
  constexpr Index kParts[] = {0, 1, 17, kEvenParts, kPowerOfTwoParts};
  for (int i = 0; i < 20000; ++i) {
    const PrecisionPath path{.p_format = static_cast<Format>(random() % 5),
                             .exp_error = error() * 0.7,
                             .log_error = error(),
                             .tanh_error = error() / 3,
                             .division_error = error(),
                             .key_block = count(1),
                             .tensor_step = count(0),
                             .sums_cast = false,
                             .scales_in_p = flip(),
                             .lazy = 126 * error(),
                             .p_shift = (flip() ? 126 : -126) * error(),
                             .block = count(0),
                             .streams = count(1),
                             .falling = flip(),
                             .part = kParts[random() % 5],
                             .in_order = flip(),
                             .sum_lanes = count(1),
                             .normalize_before_cast = flip(),
                             .scores_format = static_cast<Format>(random() % 5)};
    ASSERT_EQ(precision_invalidity(path), "") << print(path);
    ASSERT_EQ(parse_precision(print(path)), path) << print(path);
  }
}

TEST(PrecisionText, WrongLinesNameTheColumnAndAWayOut) {
  expect_refused("", {"precision, column 1", "empty", "p_format=f32"});
  expect_refused("p_fromat=bf16",
                 {"column 1", "unknown key 'p_fromat'", "did you mean 'p_format'"});
  expect_refused("p_format=fp16", {"column 10", "unknown name 'fp16'", "'f16'", "e5m2"});
  expect_refused("p_format=i8", {"column 10", "unknown name 'i8'", "legal are f32, f16"});
  expect_refused("block=64 blok=3", {"column 10", "did you mean 'block'"});
  expect_refused("block", {"column 1", "no value", "block=KEYS"});
  expect_refused("falling=1", {"column 1", "flag"});
  expect_refused("block=64 block=64", {"column 10", "second time", "column 1"});
  expect_refused("block=-1", {"column 7", "block is -1", "whole numbers from 0"});
  expect_refused("block=1.5", {"column 7", "not a number"});
  expect_refused("key_block=0", {"column 11", "key_block is 0", "whole numbers from 1"});
  expect_refused("streams=0", {"column 9", "whole numbers from 1"});
  expect_refused("sum_lanes=0", {"column 11", "whole numbers from 1"});
  expect_refused("exp_error=-0.1", {"column 11", "exp_error is -0.1", "from 0 to 1"});
  expect_refused("exp_error=nan", {"column 11", "exp_error is nan", "from 0 to 1"});
  expect_refused("log_error=1e999", {"column 11", "out of range"});
  expect_refused("lazy=127", {"column 6", "lazy is 127", "from 0 to 126"});
  expect_refused("p_shift=inf", {"column 9", "from -126 to 126"});
  expect_refused("part=-1", {"column 6", "'-1' is negative", "even"});
  expect_refused("part=evn", {"column 6", "not a number", "power_of_two"});
  expect_refused(std::string(1000000, 'x'), {"column 1", "unknown key"});
  EXPECT_LT(refusal(std::string(1000000, 'x')).size(), 1000U);
}

TEST(PrecisionText, ImpossiblePathsAreNamed) {
  EXPECT_NE(precision_invalidity({.p_format = Format::i8}).find("p_format"), std::string::npos);
  EXPECT_NE(precision_invalidity({.p_shift = NAN}).find("p_shift is nan"), std::string::npos);
  EXPECT_NE(precision_invalidity({.part = -3}).find("part is -3"), std::string::npos);
  EXPECT_EQ(precision_invalidity({.part = kPowerOfTwoParts}), "");
}

TEST(KnownPaths, ComeFirstAndWhatFollowsSaysOtherwise) {
  const PrecisionPath path = parse_precision("fa2 block=128 tensor_step=16", Format::bf16);
  EXPECT_EQ(path.p_format, Format::bf16);
  EXPECT_EQ(path.block, 128);
  EXPECT_EQ(path.key_block, 128);
  EXPECT_EQ(path.tensor_step, 16);
  EXPECT_EQ(path.sum_lanes, 4);
  EXPECT_TRUE(path.falling);
  EXPECT_EQ(parse_precision("fa2", Format::f16).p_format, Format::f16);
  EXPECT_EQ(parse_precision("f32", Format::bf16).p_format, Format::f32);
  EXPECT_EQ(parse_precision("fa3_fp8", Format::e4m3).p_format, Format::e4m3);
  EXPECT_EQ(parse_precision("fa3_fp8", Format::e4m3).p_shift, 8);
  expect_refused("fa3_fp8", {"column 1", "a path of e4m3, and q is bf16"}, Format::bf16);
  expect_refused("block=128 fa2", {"column 11", "'fa2'", "first"});
  expect_refused("fa2 fa3", {"column 5", "'fa3'", "first"});
  expect_refused("fa2", {"column 1", "f16 and bf16", "q is f32"}, Format::f32);
  expect_refused("fa4", {"did you mean 'fa2'"});
}

TEST(KnownPaths, ArePossibleAndSourced) {
  for (const KnownPath& known : known_paths()) {
    EXPECT_EQ(precision_invalidity(known.path), "") << known.name;
    EXPECT_FALSE(known.what.empty());
    EXPECT_FALSE(known.source.empty());
    const Format input = known.inputs.empty() ? Format::bf16 : known.inputs.front();
    EXPECT_EQ(refusal(known.name, input), "accepted");
  }
}

}  // namespace
}  // namespace attest
