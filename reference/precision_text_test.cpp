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
                           .keys_per_rescale = 16,
                           .tensor_step = 8,
                           .row_sum_of_rounded_p = true,
                           .v_scale_in_p = true,
                           .rescale_threshold_log2 = 8,
                           .p_scale_log2 = -0.5,
                           .kv_block = 64,
                           .interleaved_accumulators = 2,
                           .kv_blocks_descending = true,
                           .split_size = kPowerOfTwoSplits,
                           .in_order = true,
                           .partial_row_sums = 4,
                           .scores_format = Format::f16};
  const std::string line =
      "p_format=bf16 exp_error=0.1 log_error=1.1920928955078125e-07 tanh_error=0.25 "
      "division_error=1e-07 keys_per_rescale=16 tensor_step=8 row_sum_of_rounded_p v_scale_in_p "
      "rescale_threshold_log2=8 p_scale_log2=-0.5 kv_block=64 interleaved_accumulators=2 "
      "kv_blocks_descending split_size=power_of_two in_order partial_row_sums=4 "
      "scores_format=f16";
  EXPECT_EQ(print(path), line);
  EXPECT_EQ(parse_precision(line), path);
  std::set<std::string_view> names;
  // This one does not go with row_sum_of_rounded_p, and the text says so.
  PrecisionPath divided = path;
  divided.normalize_before_cast = true;
  EXPECT_NE(precision_invalidity(divided).find("row_sum_of_rounded_p"), std::string::npos);
  divided.row_sum_of_rounded_p = false;
  EXPECT_EQ(parse_precision(print(divided)), divided);
  for (const PrecisionField& field : precision_fields()) {
    if (field.name == "normalize_before_cast") continue;
    EXPECT_NE(line.find(field.name), std::string::npos) << field.name;
    EXPECT_FALSE(field.what.empty());
    names.insert(field.name);
  }
  EXPECT_EQ(names.size() + 1, precision_fields().size());
}

TEST(PrecisionText, OlderSpellingsAreRead) {
  EXPECT_EQ(parse_precision("key_block=16 sums_cast scales_in_p lazy=8 p_shift=-0.5 block=64 "
                            "streams=2 falling part=even sum_lanes=4"),
            parse_precision("keys_per_rescale=16 row_sum_of_rounded_p v_scale_in_p "
                            "rescale_threshold_log2=8 p_scale_log2=-0.5 kv_block=64 "
                            "interleaved_accumulators=2 kv_blocks_descending split_size=even "
                            "partial_row_sums=4"));
  expect_refused("block=64 kv_block=64", {"column 10", "'kv_block' stands here a second time"});
}

TEST(PrecisionText, OrderAndBlanksAreFree) {
  EXPECT_EQ(parse_precision(" kv_blocks_descending\tkv_block=8  p_format=f16 \r\n"),
            parse_precision("p_format=f16 kv_block=8 kv_blocks_descending"));
}

TEST(PrecisionText, ABlockIsTheLeastDistanceOfRescalesUnlessSaidOtherwise) {
  EXPECT_EQ(parse_precision("kv_block=64").keys_per_rescale, 64);
  EXPECT_EQ(parse_precision("kv_block=64 keys_per_rescale=1").keys_per_rescale, 1);
  EXPECT_EQ(parse_precision("keys_per_rescale=1 kv_block=64").keys_per_rescale, 1);
  EXPECT_EQ(print(PrecisionPath{.kv_block = 64}), "p_format=f32 keys_per_rescale=1 kv_block=64");
  EXPECT_EQ(print(PrecisionPath{.keys_per_rescale = 64, .kv_block = 64}),
            "p_format=f32 kv_block=64");
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
  constexpr Index kParts[] = {0, 1, 17, kEvenSplits, kPowerOfTwoSplits};
  for (int i = 0; i < 20000; ++i) {
    const PrecisionPath path{.p_format = static_cast<Format>(random() % 5),
                             .exp_error = error() * 0.7,
                             .log_error = error(),
                             .tanh_error = error() / 3,
                             .division_error = error(),
                             .keys_per_rescale = count(1),
                             .tensor_step = count(0),
                             .row_sum_of_rounded_p = false,
                             .v_scale_in_p = flip(),
                             .rescale_threshold_log2 = 126 * error(),
                             .p_scale_log2 = (flip() ? 126 : -126) * error(),
                             .kv_block = count(0),
                             .interleaved_accumulators = count(1),
                             .kv_blocks_descending = flip(),
                             .split_size = kParts[random() % 5],
                             .in_order = flip(),
                             .partial_row_sums = count(1),
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
  expect_refused("kv_block=64 kv_blok=3", {"column 13", "did you mean 'kv_block'"});
  expect_refused("kv_block", {"column 1", "no value", "kv_block=KEYS"});
  expect_refused("kv_blocks_descending=1", {"column 1", "flag"});
  expect_refused("kv_block=64 kv_block=64", {"column 13", "second time", "column 1"});
  expect_refused("kv_block=-1", {"column 10", "kv_block is -1", "whole numbers from 0"});
  expect_refused("kv_block=1.5", {"column 10", "not a number"});
  expect_refused("keys_per_rescale=0",
                 {"column 18", "keys_per_rescale is 0", "whole numbers from 1"});
  expect_refused("interleaved_accumulators=0", {"column 26", "whole numbers from 1"});
  expect_refused("partial_row_sums=0", {"column 18", "whole numbers from 1"});
  expect_refused("exp_error=-0.1", {"column 11", "exp_error is -0.1", "from 0 to 1"});
  expect_refused("exp_error=nan", {"column 11", "exp_error is nan", "from 0 to 1"});
  expect_refused("log_error=1e999", {"column 11", "out of range"});
  expect_refused("rescale_threshold_log2=127",
                 {"column 24", "rescale_threshold_log2 is 127", "from 0 to 126"});
  expect_refused("p_scale_log2=inf", {"column 14", "from -126 to 126"});
  expect_refused("split_size=-1", {"column 12", "'-1' is negative", "even"});
  expect_refused("split_size=evn", {"column 12", "not a number", "power_of_two"});
  expect_refused(std::string(1000000, 'x'), {"column 1", "unknown key"});
  EXPECT_LT(refusal(std::string(1000000, 'x')).size(), 1000U);
}

TEST(PrecisionText, ImpossiblePathsAreNamed) {
  EXPECT_NE(precision_invalidity({.p_format = Format::i8}).find("p_format"), std::string::npos);
  EXPECT_NE(precision_invalidity({.p_scale_log2 = NAN}).find("p_scale_log2 is nan"),
            std::string::npos);
  EXPECT_NE(precision_invalidity({.split_size = -3}).find("split_size is -3"), std::string::npos);
  EXPECT_EQ(precision_invalidity({.split_size = kPowerOfTwoSplits}), "");
}

TEST(KnownPaths, ComeFirstAndWhatFollowsSaysOtherwise) {
  const PrecisionPath path = parse_precision("fa2 kv_block=128 tensor_step=16", Format::bf16);
  EXPECT_EQ(path.p_format, Format::bf16);
  EXPECT_EQ(path.kv_block, 128);
  EXPECT_EQ(path.keys_per_rescale, 128);
  EXPECT_EQ(path.tensor_step, 16);
  EXPECT_EQ(path.partial_row_sums, 4);
  EXPECT_TRUE(path.kv_blocks_descending);
  EXPECT_EQ(parse_precision("fa2", Format::f16).p_format, Format::f16);
  EXPECT_EQ(parse_precision("f32", Format::bf16).p_format, Format::f32);
  EXPECT_EQ(parse_precision("fa3_fp8", Format::e4m3).p_format, Format::e4m3);
  EXPECT_EQ(parse_precision("fa3_fp8", Format::e4m3).p_scale_log2, 8);
  expect_refused("fa3_fp8", {"column 1", "a path of e4m3, and q is bf16"}, Format::bf16);
  expect_refused("kv_block=128 fa2", {"column 14", "'fa2'", "first"});
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
