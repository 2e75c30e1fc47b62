// What a copy out of the device's memory takes along that nobody wrote. Knows bits of written bytes
// and how compilers lay out structs; knows no copies and no findings.
#pragma once
#include "optimized/emulator/engine/machine.hpp"

namespace attest::emulator {

struct Unwritten {
  u64 first = 0, bytes = 0;  // where the first of them is, and how many there are; 0: none
};

/// Of bytes [begin, begin + count), of which bit i of `bits` says whether byte i was written.
/// Padding of structs is none of it: gaps of fewer than eight bytes that end where a larger member
/// may begin, and are the same in each of the structs that make up the whole.
Unwritten unwritten_in(const u8* bits, u64 begin, u64 count);

}  // namespace attest::emulator
