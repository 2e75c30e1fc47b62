// FNV-1a, 64 bits: names of findings and digests of bits, the same on every machine. It tells apart
// what differs by accident; it is no protection against somebody who wants a collision.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace attest {

inline constexpr std::uint64_t kFnvBasis = 0xcbf29ce484222325ULL;  // of nothing

constexpr std::uint64_t fnv_of(std::span<const std::byte> bytes, std::uint64_t before = kFnvBasis) {
  constexpr std::uint64_t kPrime = 0x100000001b3ULL;
  for (const std::byte each : bytes) {
    before = (before ^ std::to_integer<std::uint64_t>(each)) * kPrime;
  }
  return before;
}

inline std::uint64_t fnv_of(std::string_view text) {
  return fnv_of(std::as_bytes(std::span(text.data(), text.size())));
}

}  // namespace attest
