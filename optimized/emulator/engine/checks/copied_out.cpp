// Finds unwritten bytes, and tells padding from what was forgotten. See copied_out.hpp.
#include "optimized/emulator/engine/checks/copied_out.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace attest::emulator {
namespace {

constexpr u64 kMemberMax = 8;       // the widest member that a compiler aligns: a pointer, a double
constexpr u64 kStructMax = 256;     // beyond it a repeated gap is rather a forgotten element
constexpr u64 kLoneStructMax = 64;  // a copy of one struct has nothing to repeat

bool written(const u8* bits, u64 i) {
  return (bits[i / 8] >> (i % 8)) & 1;
}

/// The next byte from `at` on, before `end`, that was written or not.
u64 next_that_is(const u8* bits, u64 at, u64 end, bool value) {
  const u64 same = value ? 0 : ~u64{0};
  while (at < end) {
    u64 word = 0;
    if (at % 8 == 0 && at + 64 <= end) {
      std::memcpy(&word, bits + at / 8, sizeof word);
      if (word == same) {
        at += 64;
        continue;
      }
    }
    if (written(bits, at) == value) return at;
    ++at;
  }
  return end;
}

/// The alignment of the member that such a gap would precede; 0: it is no padding.
u64 alignment_behind(u64 gap, u64 end) {
  const u64 alignment = std::bit_ceil(gap + 1);
  return alignment <= kMemberMax && end % alignment == 0 ? alignment : 0;
}

bool repeats(const u8* bits, u64 begin, u64 count, u64 period) {
  for (u64 i = begin; i + period < begin + count; ++i) {
    if (written(bits, i) != written(bits, i + period)) return false;
  }
  return true;
}

bool is_padding(const u8* bits, u64 begin, u64 count, u64 alignment) {
  const u64 most = std::min(count <= kLoneStructMax ? count : count / 2, kStructMax);
  for (u64 period = 2 * alignment; period <= most; period += alignment) {
    if (count % period == 0 && repeats(bits, begin, count, period)) return true;
  }
  return false;
}

}  // namespace

Unwritten unwritten_in(const u8* bits, u64 begin, u64 count) {
  const u64 end = begin + count;
  Unwritten found;
  u64 alignment = 1;  // of the structs, if they are some
  for (u64 at = next_that_is(bits, begin, end, false); at < end;) {
    const u64 behind = next_that_is(bits, at, end, true);
    if (found.bytes == 0) found.first = at;
    found.bytes += behind - at;
    const u64 needed = at == begin ? 0 : alignment_behind(behind - at, behind);
    alignment = needed == 0 || alignment == 0 ? 0 : std::max(alignment, needed);
    at = next_that_is(bits, behind, end, false);
  }
  if (found.bytes != 0 && alignment != 0 && is_padding(bits, begin, count, alignment)) return {};
  return found;
}

}  // namespace attest::emulator
