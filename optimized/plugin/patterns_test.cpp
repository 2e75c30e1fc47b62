// The patterns, derived once more from the definitions of the formats.
#include "optimized/plugin/patterns.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "optimized/plugin/fault_kinds.hpp"
#include "reference/formats.hpp"

namespace attest {
namespace {

constexpr Format kFormats[] = {Format::f32, Format::f16, Format::bf16, Format::e4m3, Format::e5m2};

// Counted up bit by bit, since patterns of positive numbers are ordered as the numbers are.
double largest_finite(Format format) {
  const unsigned width = 8 * static_cast<unsigned>(bytes_of(element_of(format)));
  std::uint32_t pattern = 0;
  for (unsigned bit = width - 1; bit-- > 0;) {
    if (std::isfinite(decode(format, pattern | 1U << bit))) pattern |= 1U << bit;
  }
  return decode(format, pattern);
}

TEST(Patterns, HugeIsHalfTheLargestFiniteNumber) {
  for (const Format format : kFormats) {
    EXPECT_EQ(decode(format, poison_pattern(element_of(format), Poison::huge)),
              largest_finite(format) / 2);
  }
}

TEST(Patterns, SmallIsTheSmallestNormalNumber) {
  const double smallest[] = {0x1p-126, 0x1p-14, 0x1p-126, 0x1p-6, 0x1p-14};
  for (std::size_t i = 0; i < std::size(kFormats); ++i) {
    EXPECT_EQ(decode(kFormats[i], poison_pattern(element_of(kFormats[i]), Poison::small)),
              smallest[i]);
  }
}

TEST(Patterns, NanAndSentinelAreNansThatRoundingNeverReturns) {
  for (const Format format : kFormats) {
    const Element element = element_of(format);
    const std::uint32_t sentinel = sentinel_pattern(element);
    EXPECT_TRUE(std::isnan(decode(format, poison_pattern(element, Poison::nan))));
    EXPECT_TRUE(std::isnan(decode(format, sentinel)));
    EXPECT_NE(sentinel, poison_pattern(element, Poison::nan));
    EXPECT_NE(sentinel, encode(format, std::nan("")));
    EXPECT_NE(sentinel, encode(format, decode(format, sentinel)));
  }
}

TEST(Patterns, FillRepeatsTheElement) {
  for (const std::size_t count : {0, 1, 2, 3, 5, 8, 1000}) {
    for (const Element element : {Element::f32, Element::bf16, Element::u8}) {
      std::vector<std::byte> memory(count * bytes_of(element));
      fill_with(memory, element, sentinel_pattern(element));
      for (std::size_t i = 0; i < count; ++i) {
        ASSERT_EQ(pattern_at(memory.data() + i * bytes_of(element), element),
                  sentinel_pattern(element));
      }
    }
  }
}

TEST(Patterns, DlpackTypesAreThoseOfTheHeader) {
  EXPECT_EQ(dlpack_type(Element::f32).code, kDLFloat);
  EXPECT_EQ(dlpack_type(Element::bf16).code, kDLBfloat);
  EXPECT_EQ(dlpack_type(Element::bf16).bits, 16);
  EXPECT_EQ(dlpack_type(Element::e4m3).code, 10);  // DLPack 1.1: kDLFloat8_e4m3fn
  EXPECT_EQ(dlpack_type(Element::e5m2).code, 12);  // DLPack 1.1: kDLFloat8_e5m2
  EXPECT_EQ(dlpack_type(Element::u8).lanes, 1);
}

TEST(FaultKinds, ReadmeExplainsEachInTheSameWords) {
  const std::string path = std::string(__FILE__).substr(0, std::string(__FILE__).rfind('/'));
  std::ifstream file(path + "/README.md");
  std::string readme{std::istreambuf_iterator<char>(file), {}};
  for (const FaultMeaning& fault : kFaultMeanings) {
    const std::string line =
        "| `" + std::string(fault.name) + "` | " + std::string(fault.meaning) + " |";
    EXPECT_NE(readme.find(line), std::string::npos) << line;
  }
}

}  // namespace
}  // namespace attest
