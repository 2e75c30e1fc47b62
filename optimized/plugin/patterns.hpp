// The bit patterns that fill memory which holds no number: poison, the sentinel of unwritten
// outputs, and how DLPack spells each element type. Knows nothing of tensors or of processes.
#pragma once
#include <dlpack/dlpack.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "reference/subject.hpp"

namespace attest {

/// What a tensor handed to a plugin holds: the formats of attest, and two kinds of integer.
enum class Element : std::uint8_t { f32, f16, bf16, e4m3, e5m2, i8, i32, u8 };

Element element_of(Format format);
std::size_t bytes_of(Element element);
DLDataType dlpack_type(Element element);

/// nan: a quiet NaN with a payload of its own. huge: half the largest finite number, so that one
/// addition does not yet overflow. small: the smallest normal number. Lengths (i32) are poisoned
/// with a number far beyond any extent, mask bytes (u8) with 1: they claim to be visible; i8, which
/// has no NaN, with numbers as large as it has.
std::uint32_t poison_pattern(Element element, Poison poison);

/// A NaN that no arithmetic instruction and no conversion returns (signalling; for e4m3, which has
/// one NaN only, the negative one; for i8, which has none, -128). An output element that still
/// holds it was not written.
std::uint32_t sentinel_pattern(Element element);

/// Repeats the element-wide `pattern` over `memory`, whose size is a multiple of the element's.
void fill_with(std::span<std::byte> memory, Element element, std::uint32_t pattern);

/// The element at `address`, zero-extended.
std::uint32_t pattern_at(const std::byte* address, Element element);

}  // namespace attest
