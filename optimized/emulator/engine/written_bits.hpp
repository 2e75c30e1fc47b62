// Bits that say which bytes of some memory were written: bit i is byte i.
#pragma once
#include <cstddef>
#include <cstring>

#include "optimized/emulator/engine/machine.hpp"

namespace attest::emulator {

/// Room behind the last byte of bits, which are read in words.
inline constexpr std::size_t kBitRoom = 16;

/// Sets or clears bits [begin, end).
inline void fill_bits(u8* bits, u64 begin, u64 end, bool value) {
  const auto one = [&](u64 i) {
    const u8 bit = u8(1u << (i % 8));
    bits[i / 8] = value ? bits[i / 8] | bit : bits[i / 8] & u8(~bit);
  };
  u64 at = begin;
  for (; at < end && at % 8 != 0; ++at) one(at);
  const u64 whole = (end - at) / 8;
  std::memset(bits + at / 8, value ? 0xff : 0, whole);
  for (at += whole * 8; at < end; ++at) one(at);
}

}  // namespace attest::emulator
