// What somebody knows of the accesses of blocks: of each block, up to which time of each thread.
// Knowledge is handed on and joined at every release and acquire, and most of it is the same each
// time; so it is a tree of parts that are shared and never change. Knows nothing of who tells whom.
#pragma once
#include <array>
#include <memory>
#include <vector>

#include "optimized/emulator/engine/machine.hpp"

namespace attest::emulator {

/// The time up to which the accesses of each thread of one block are known.
using Times = std::vector<u32>;
using TimesRef = std::shared_ptr<const Times>;

struct World;
using WorldRef = std::shared_ptr<const World>;  // nullptr: nothing is known

/// Blocks by number, four bits of it per level of the tree.
struct World {
  static constexpr u32 kBits = 4, kWays = 1u << kBits;
  u32 height = 0;           // levels below
  u64 blocks = 0;           // of which something is known
  bool everything = false;  // there was no room to keep blocks apart: all is taken as known
  std::array<WorldRef, kWays> parts = {};  // of height > 0
  std::array<TimesRef, kWays> times = {};  // of height 0
};

/// Joins of parts that were made lately: in a grid-wide barrier every block makes the same ones.
struct WorldJoins {
  struct Join {
    WorldRef a, b, both;
  };
  std::vector<Join> lately;  // by hash
  u64 blocks_max = ~u64{0};  // more are `everything`
};

TimesRef join_times(const TimesRef& a, const TimesRef& b);
WorldRef join_worlds(WorldJoins& joins, const WorldRef& a, const WorldRef& b);
/// The world that knows this of a block as well.
WorldRef world_with(WorldJoins& joins, const WorldRef& world, u64 block, const TimesRef& times);
/// What it knows of a block; nullptr: nothing, or everything.
const TimesRef& times_of(const WorldRef& world, u64 block);

}  // namespace attest::emulator
