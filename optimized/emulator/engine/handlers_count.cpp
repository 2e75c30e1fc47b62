// Counts an access to memory: global memory in sectors of 32 bytes, shared memory in passes over
// the 32 banks of four bytes, local memory in bytes. A pass serves one word per bank to any number
// of lanes; accesses of 8 and 16 bytes are served in halves and quarters of the warp; lanes that
// update the same word are served one after another. No cache is modelled.
#include "optimized/emulator/engine/watch.hpp"

namespace attest::emulator::ATTEST_ISA {
namespace {

constexpr u32 kSectorBytes = 32, kBanks = 32, kWordBytes = 4;

struct Cost {
  u32 taken, least;
};

ATTEST_INLINE u32 lowest(u32 mask) {
  return u32(__builtin_ctz(mask));
}

/// Accesses are aligned and of one size, a power of two up to a sector: any two of them touch the
/// same bytes or none in common, and each lies in one sector.
Cost sectors_of(const u64* address, u32 mask, u32 bytes) {
  u64 sector[kLanes], distinct[kLanes];
  u32 sectors = 0, places = 0;
  for (u32 left = mask; left; left &= left - 1) {
    const u64 a = address[lowest(left)];
    u32 i = 0;
    while (i < sectors && sector[i] != a / kSectorBytes) ++i;
    if (i == sectors) sector[sectors++] = a / kSectorBytes;
    i = 0;
    while (i < places && distinct[i] != a) ++i;
    if (i == places) distinct[places++] = a;
  }
  return {sectors, (places * bytes + kSectorBytes - 1) / kSectorBytes};
}

/// The most words that one bank has to give to the lanes of `group`.
u32 passes_of_group(const u64* address, u32 group, u32 bytes, bool update) {
  u64 word[kBanks][kLanes];
  u32 words[kBanks] = {};
  u32 most = 0;
  for (u32 left = group; left; left &= left - 1) {
    const u64 first = address[lowest(left)] / kWordBytes;
    const u32 count = bytes < kWordBytes ? 1 : bytes / kWordBytes;
    for (u64 at = first; at < first + count; ++at) {
      u64* const held = word[at % kBanks];
      u32& used = words[at % kBanks];
      u32 i = 0;
      while (!update && i < used && held[i] != at) ++i;
      if (update || i == used) held[used++] = at;
      most = used > most ? used : most;
    }
  }
  return most;
}

/// Lanes that are served together: as many as 32 words can satisfy.
u32 lanes_per_group(u32 bytes) {
  return bytes <= kWordBytes ? kLanes : kBanks * kWordBytes / bytes;
}

Cost passes_of(const u64* address, u32 mask, u32 bytes, bool update) {
  Cost cost{0, 0};
  const u32 lanes = lanes_per_group(bytes);
  const u32 group = lanes == kLanes ? kAllLanes : (1u << lanes) - 1;
  for (u32 first = 0; first < kLanes; first += lanes) {
    const u32 present = mask & (group << first);
    if (present == 0) continue;
    cost.taken += passes_of_group(address, present, bytes, update);
    ++cost.least;
  }
  return cost;
}

enum class Room : u8 { global, shared, shared_update };

/// Whether lanes lie from `first` as they did. 32-bit distances: `near` says that they hold it.
template <class A>
ATTEST_INLINE bool same_pattern(const AccessPattern& known, const A* at, A first, u32 mask) {
  u32 differs = 0;
  A far = 0;
  if (mask == kAllLanes) {
    ATTEST_LANES {
      const A d = at[l] - first;
      differs |= u32(d) ^ known.distance[l];
      if constexpr (sizeof(A) == 8) far |= d + 0x8000'0000u;
    }
  } else {
    ATTEST_LANES {
      const A d = (at[l] - first) & (A{0} - A((mask >> l) & 1));
      differs |= u32(d) ^ known.distance[l];
      if constexpr (sizeof(A) == 8) far |= d + 0x8000'0000u;
    }
  }
  if constexpr (sizeof(A) == 8) return differs == 0 && far >> 32 == 0;
  return differs == 0;
}

/// Keeps it unless it spans too much.
template <class A>
void keep_pattern(AccessPattern& known, const A* at, A first, u32 mask) {
  for (u32 l = 0; l < kLanes; ++l) {
    const A d = (mask >> l) & 1 ? at[l] - first : 0;
    if (sizeof(A) == 8 && (u64(d) + 0x8000'0000u) >> 32 != 0) known.op = nullptr;
    known.distance[l] = u32(d);
  }
}

/// Looks the pattern up before it is worked out. Moving all addresses by whole words changes no
/// passes; sectors depend on where the first lane lies within its own.
template <class A>
ATTEST_INLINE Cost cost_of_pattern(const Op& op, Warp& w, const A* at, u32 mask, u32 bytes,
                                   Room room) {
  const A first = at[lowest(mask)];
  // Loads and stores are numbered; an asynchronous copy is an access to each of two spaces.
  AccessPattern& known = w.patterns[(2 * op.cache + (room != Room::global)) % kPatterns];
  const u32 within = u32(first) % (room == Room::global ? kSectorBytes : kWordBytes);
  const u64 kind = u64(mask) | u64(bytes) << 32 | u64(room) << 40 | u64(within) << 48;
  if (known.op == &op && known.kind == kind && same_pattern<A>(known, at, first, mask))
    return {known.taken, known.least};
  u64 address[kLanes];
  for (u32 l = 0; l < kLanes; ++l) address[l] = at[l];
  const Cost cost = room == Room::global
                        ? sectors_of(address, mask, bytes)
                        : passes_of(address, mask, bytes, room == Room::shared_update);
  known.op = &op, known.kind = kind, known.taken = cost.taken, known.least = cost.least;
  keep_pattern<A>(known, at, first, mask);
  return cost;
}

void count_global(InstructionCount& count, u32 mask, u32 bytes, Cost cost) {
  count.global_bytes += u64(bytes) * u32(__builtin_popcount(mask));
  count.sectors += cost.taken, count.least_sectors += cost.least;
}
void count_shared(InstructionCount& count, u32 mask, u32 bytes, Cost cost) {
  count.shared_bytes += u64(bytes) * u32(__builtin_popcount(mask));
  count.passes += cost.taken, count.least_passes += cost.least;
}

/// All lanes at one place or side by side: nothing to look up.
bool count_plain(InstructionCount& count, const Warp& w, Space space, u64 first, Spread spread,
                 u32 bytes) {
  if (w.mask != kAllLanes || bytes > kSectorBytes) return false;
  const bool same = spread == Spread::same;
  if (space == Space::shared) {
    const u32 groups = kLanes / lanes_per_group(bytes);
    count_shared(count, kAllLanes, bytes, {groups, groups});
  } else {
    const u32 span = same ? bytes : kLanes * bytes, within = u32(first) % kSectorBytes;
    count_global(count, kAllLanes, bytes,
                 {(within + span + kSectorBytes - 1) / kSectorBytes,
                  (span + kSectorBytes - 1) / kSectorBytes});
  }
  return true;
}

bool inside(u64 address, const u8* begin, u64 bytes) {
  return address - reinterpret_cast<u64>(begin) < bytes;
}

/// The space in which a host address lies, when the instruction does not say.
Space space_at(const Warp& w, u64 address) {
  if (inside(address, w.shared, w.shared_bytes)) return Space::shared;
  if (inside(address, w.local, w.local_stride * kLanes)) return Space::local;
  if (inside(address, w.parameters, w.parameter_bytes)) return Space::param;
  return Space::global;
}

/// Each lane where its address leads.
void count_mixed(const Op& op, Warp& w, Room shared_room, Space space, const Places& p,
                 Spread spread, u32 bytes) {
  InstructionCount& count = w.counts[&op - w.first_op];
  alignas(64) u64 address[kLanes];
  for (u32 l = 0; l < kLanes; ++l) address[l] = address_of(p, spread, bytes, l);
  u32 shared = space == Space::shared ? w.mask : 0, local = 0, passed = 0;
  for (u32 left = space == Space::generic ? w.mask : 0; left; left &= left - 1) {
    const u32 bit = left & (~left + 1);
    const Space at = space_at(w, address[lowest(left)]);
    shared |= at == Space::shared ? bit : 0;
    local |= at == Space::local ? bit : 0;
    passed |= at == Space::param ? bit : 0;
  }
  const u32 global = w.mask & ~(shared | local | passed);
  if (global != 0)
    count_global(count, global, bytes,
                 cost_of_pattern<u64>(op, w, address, global, bytes, Room::global));
  if (shared != 0) {
    const u64 base = reinterpret_cast<u64>(w.shared);
    ATTEST_LANES address[l] -= base;  // the banks begin there
    count_shared(count, shared, bytes,
                 cost_of_pattern<u64>(op, w, address, shared, bytes, shared_room));
  }
  count.local_bytes += u64(bytes) * u32(__builtin_popcount(local));
}

}  // namespace

void count_access(const Op& op, Warp& w, Access access, Space space, const Places& p, Spread spread,
                  u32 bytes) {
  if (space == Space::param || w.mask == 0) return;
  InstructionCount& count = w.counts[&op - w.first_op];
  if (space == Space::local) {
    count.local_bytes += u64(bytes) * u32(__builtin_popcount(w.mask));
    return;
  }
  const Room shared_room = access == Access::update ? Room::shared_update : Room::shared;
  if (spread == Spread::offsets) {  // from the beginning of shared memory
    count_shared(count, w.mask, bytes,
                 cost_of_pattern<u32>(op, w, p.offset, w.mask, bytes, shared_room));
  } else if (spread == Spread::scattered && space != Space::generic && space != Space::shared) {
    count_global(count, w.mask, bytes,
                 cost_of_pattern<u64>(op, w, p.at, w.mask, bytes, Room::global));
  } else if (spread == Spread::scattered || space == Space::generic || access == Access::update ||
             !count_plain(count, w, space, reinterpret_cast<u64>(p.first), spread, bytes)) {
    count_mixed(op, w, shared_room, space, p, spread, bytes);
  }
}

}  // namespace attest::emulator::ATTEST_ISA
