// Values of the patterns. Each is written out, since that is shorter than deriving it; the test
// derives them again from the definition of the formats.
#include "optimized/plugin/patterns.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "optimized/plugin/attest_subject.h"

namespace attest {
namespace {

struct Patterns {
  std::uint8_t bytes;
  std::uint8_t dlpack_code;
  std::uint32_t nan, huge, small, sentinel;
};

// In the order of Element.
constexpr std::array<Patterns, 8> kPatterns{{
    {4, kDLFloat, 0x7fda5da5, 0x7effffff, 0x00800000, 0x7fa5a5a5},
    {2, kDLFloat, 0x7e5a, 0x77ff, 0x0400, 0x7d5a},
    {2, kDLBfloat, 0x7fda, 0x7eff, 0x0080, 0x7fa5},
    {1, ATTEST_DL_FLOAT8_E4M3FN, 0x7f, 0x76, 0x08, 0xff},
    {1, ATTEST_DL_FLOAT8_E5M2, 0x7e, 0x77, 0x04, 0x7d},
    {1, kDLInt, 0x80, 0x7f, 0x01, 0x80},
    {4, kDLInt, 0x5a5a5a5a, 0x5a5a5a5a, 0x5a5a5a5a, 0xa5a5a5a5},
    {1, kDLUInt, 1, 1, 1, 0xa5},
}};

const Patterns& patterns_of(Element element) {
  return kPatterns[static_cast<std::size_t>(element)];
}

}  // namespace

Element element_of(Format format) {
  switch (format) {
    case Format::f32:
      return Element::f32;
    case Format::f16:
      return Element::f16;
    case Format::bf16:
      return Element::bf16;
    case Format::e4m3:
      return Element::e4m3;
    case Format::e5m2:
      return Element::e5m2;
    case Format::i8:
      return Element::i8;
  }
  return Element::f32;
}

std::size_t bytes_of(Element element) {
  return patterns_of(element).bytes;
}

DLDataType dlpack_type(Element element) {
  const Patterns& patterns = patterns_of(element);
  return {patterns.dlpack_code, static_cast<std::uint8_t>(8 * patterns.bytes), 1};
}

std::uint32_t poison_pattern(Element element, Poison poison) {
  const Patterns& patterns = patterns_of(element);
  switch (poison) {
    case Poison::nan:
      return patterns.nan;
    case Poison::huge:
      return patterns.huge;
    case Poison::small:
      return patterns.small;
  }
  return patterns.nan;
}

std::uint32_t sentinel_pattern(Element element) {
  return patterns_of(element).sentinel;
}

void fill_with(std::span<std::byte> memory, Element element, std::uint32_t pattern) {
  if (memory.empty()) return;
  const std::size_t width = bytes_of(element);
  // Little-endian, as every machine with a CUDA driver is; then double what is already there.
  std::memcpy(memory.data(), &pattern, std::min(width, memory.size()));
  for (std::size_t done = width; done < memory.size(); done *= 2) {
    std::memcpy(memory.data() + done, memory.data(), std::min(done, memory.size() - done));
  }
}

std::uint32_t pattern_at(const std::byte* address, Element element) {
  std::uint32_t pattern = 0;
  std::memcpy(&pattern, address, bytes_of(element));
  return pattern;
}

}  // namespace attest
