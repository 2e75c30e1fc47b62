// Judges reads of memory that nothing has written, byte by byte. A load whose value only travels to
// stores is not judged: it carries what it found, so that copies of structs with padding are
// silent. The vector code (init_lanes.hpp) answers the usual case, in which all is well.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "optimized/emulator/engine/checks/state.hpp"
#include "optimized/emulator/engine/spelling.hpp"

namespace attest::emulator {
namespace {

/// Where the bits of an address are; bits == nullptr: nothing is kept of it.
struct Place {
  u8* bits = nullptr;
  u64 at = 0;  // index of the bit
  Space space = Space::global;
};

Place place_of(const Op& op, Warp& w, u64 address) {
  BlockChecks& c = *w.block->checks;
  const u64 shared = reinterpret_cast<u64>(w.shared);
  if (address - shared < w.shared_bytes)
    return {c.shared_bits.data(), address - shared, Space::shared};
  const u64 local = c.watching[w.index].local_begin;
  if (address - local < w.local_stride * kLanes * w.block->launch->warps_per_block)
    return {c.local_bits.data(), address - local, Space::local};
  if (address - reinterpret_cast<u64>(w.parameters) < w.parameter_bytes)
    return {nullptr, 0, Space::param};
  Region& region = c.regions[op.cache];
  if (address - region.begin >= region.bytes) {
    const Memory::Written written = w.block->launch->memory->written_at(address);
    region = {written.begin, written.bytes, written.bits};
    if (address - region.begin >= region.bytes) return {};
  }
  return {region.bits, address - region.begin, Space::global};
}

u32 bits_at(const Place& p, u32 count) {
  if (p.bits == nullptr) return u32((u64{1} << count) - 1);
  u64 word;
  __builtin_memcpy(&word, p.bits + p.at / 8, sizeof word);
  const u64 mask = (u64{1} << count) - 1;
  return u32((word >> (p.at % 8)) & mask);
}

/// Blocks on other host threads may set neighbouring bits.
void set_bits(const Place& p, u32 count, u32 values) {
  if (p.bits == nullptr) return;
  for (u32 i = 0; i < count; ++i) {
    u8* byte = p.bits + (p.at + i) / 8;
    const u8 bit = u8(1u << ((p.at + i) % 8));
    if ((values >> i) & 1) {
      if (!(__atomic_load_n(byte, __ATOMIC_RELAXED) & bit))
        __atomic_fetch_or(byte, bit, __ATOMIC_RELAXED);
    } else {
      __atomic_fetch_and(byte, u8(~bit), __ATOMIC_RELAXED);
    }
  }
}

/// What is wrong with an access by the lanes, of which the first is at the address.
std::string text_of(const Op& op, Warp& w, Access access, u32 lanes, u64 address,
                    const Place& place, u32 bytes, u32 missing) {
  std::string where;
  if (place.space == Space::global) {
    const Region& r = w.block->checks->regions[op.cache];
    where = fmt::format("global memory at {:#x}, {} bytes into an allocation of {} bytes,", address,
                        address - r.begin, r.bytes);
  } else if (place.space == Space::shared) {
    where = fmt::format("shared memory at offset {:#x}", place.at);
  } else {
    where = fmt::format("local memory at offset {:#x}", place.at % w.local_stride);
  }
  std::string more;
  const u32 count = u32(__builtin_popcount(lanes));
  if (count > 1) more = fmt::format("; so do {} more lanes of the warp", count - 1);
  return fmt::format("{} {} bytes of {} {} nothing has written{}",
                     access == Access::update ? "updates" : "reads", bytes, where,
                     missing == bytes ? "that" : fmt::format("of which {}", missing), more);
}

/// Loads into registers, whose values may come to nothing: of lanes each for itself, of rows that
/// all share, of pieces of a matrix.
enum class Loads : u8 { nothing, lanes, rows, wmma };
Loads loads_of(const ptx::Instruction& i) {
  if (i.opcode == "ld" || i.opcode == "ldu") return Loads::lanes;
  if (i.opcode == "ldmatrix") return Loads::rows;
  return i.opcode == "wmma" ? Loads::wmma : Loads::nothing;
}

/// Op::count of a matrix counts its registers, not what a lane accesses.
bool is_matrix(const Op& op, const Warp& w) {
  const std::string& opcode = w.frame->code->function->body[op.origin].opcode;
  return opcode == "ldmatrix" || opcode == "stmatrix" || opcode == "wmma";
}

/// Lets a copy to the host say who stored what nobody had defined.
void left_undefined(const Op& op, Warp& w, u64 address, u32 bytes) {
  w.block->launch->memory->note_undefined(address, bytes, &op, [&] {
    return fmt::format("kernel {} at {}",
                       readable_name(w.block->launch->program->entry->function->name),
                       line_of(w, op));
  });
}

/// Whether all bytes of an ordinary copy were written.
bool is_whole(const Place& p, u32 bytes) {
  constexpr u32 kMost = 16;
  return bytes <= kMost && bits_at(p, bytes) == (1u << bytes) - 1;
}

/// Number i of the carried values of an access, or kNone.
u32 carried_of(const Op& op, u32 i) {
  return memory_flags(op) & kCarries ? op.list[op.count + i] : kNone;
}

}  // namespace

void copy_bits(const Op& op, Warp& w, u64 to, u64 from, u32 bytes) {
  const Place source = place_of(op, w, from), target = place_of(op, w, to);
  if (target.space == Space::shared && is_whole(source, bytes) && (target.at | bytes) % 8 == 0) {
    std::memset(target.bits + target.at / 8, 0xff, bytes / 8);
    return;
  }
  for (u32 i = 0; i < bytes; i += 8) {
    const u32 count = std::min(bytes - i, 8u);
    set_bits(place_of(op, w, to + i), count, bits_at(place_of(op, w, from + i), count));
  }
}

bool is_unwritten(const Op& op, Warp& w, u64 address) {
  return (bits_at(place_of(op, w, address), 1) & 1) == 0;
}

void init_lanes(const Op& op, Warp& w, Access access, Space, const u64* at, u32 bytes) {
  BlockChecks& c = *w.block->checks;
  Carried* carried = c.watching[w.index].carried;
  const Loads loads =
      access == Access::read ? loads_of(w.frame->code->function->body[op.origin]) : Loads::nothing;
  const bool pieces = access == Access::write && !c.undefined.stored_pieces.empty();
  bool hollow = access == Access::write && c.watching[w.index].hollow != 0;
  const bool by_element = loads == Loads::lanes || hollow || (memory_flags(op) & kCarries);
  const u32 count = by_element && op.count > 1 && !is_matrix(op, w) ? op.count : 1;
  const u32 width = bytes / count, all = u32((u64{1} << width) - 1);
  u32 bad = 0, missing = 0, bad_bytes[kLanes] = {};
  Place first_place;
  for (u32 left = w.mask; left; left &= left - 1) {
    const u32 lane = u32(__builtin_ctz(left)), own = 1u << lane;
    u32 undefined = !hollow  ? 0
                    : pieces ? stored_by_wmma(c.undefined, at[lane], bytes)
                             : c.undefined.stored[lane];
    if (undefined != 0 && place_of(op, w, at[lane]).space == Space::global) {
      use_stored(op, w);
      hollow = false, undefined = 0;
    }
    for (u32 i = 0; i < count; ++i) {
      Place place = place_of(op, w, at[lane] + u64(i) * width);
      const u32 number = carried_of(op, i);
      if (access == Access::write) {
        const bool whole = number == kNone || (carried[number].whole & own);
        const u32 values =
            (whole ? all : carried[number].partial[lane] & all) & ~(undefined >> (i * width));
        set_bits(place, width, values);
        if (values != all && place.space == Space::global && place.bits != nullptr)
          left_undefined(op, w, at[lane] + u64(i) * width, width);
        continue;
      }
      const u32 found = bits_at(place, width) & all;
      if (number != kNone) {
        Carried& to = carried[number];
        to.whole = found == all ? to.whole | own : to.whole & ~own;
        to.partial[lane] = u8(found);
      } else if (found != all && !(memory_flags(op) & kUnjudged)) {
        if (bad == 0) {
          first_place = place_of(op, w, at[lane]);
          missing = bytes - u32(__builtin_popcountll(bits_at(first_place, bytes)));
        }
        bad |= own;
        bad_bytes[lane] |= (~found & all) << (i * width);
      }
      if (access == Access::update) set_bits(place, width, ~0u);
    }
  }
  if (bad == 0 || !is_news(*w.block, op)) return;
  const u32 lane = u32(__builtin_ctz(bad));
  std::string what = text_of(op, w, access, bad, at[lane], first_place, bytes, missing);
  if (loads == Loads::nothing) {
    if (report_once(w, op, kWatchInit)) note(w, op, lane, "initcheck", what);
    return;
  }
  const u32 origin = origin_of(op, w, lane, std::move(what));
  if (loads == Loads::lanes) load_undefined(op, w, bad_bytes, origin);
  if (loads == Loads::rows) load_undefined_rows(op, w, bad_bytes, origin);
  if (loads == Loads::wmma) load_undefined_wmma(op, w, origin);
}

}  // namespace attest::emulator
