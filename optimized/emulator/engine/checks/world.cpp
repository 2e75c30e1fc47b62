// Trees of times. See world.hpp.
#include "optimized/emulator/engine/checks/world.hpp"

#include <algorithm>

namespace attest::emulator {
namespace {

constexpr std::size_t kJoinsKept = 1024;  // several for each of the parts of 4,096 blocks

u32 way_of(u64 block, u32 height) {
  return u32(block >> (height * World::kBits)) % World::kWays;
}
bool holds(u32 height, u64 block) {
  return block >> ((height + 1) * World::kBits) == 0;
}

WorldRef raised(const WorldRef& world) {
  auto above = std::make_shared<World>();
  above->height = world->height + 1;
  above->blocks = world->blocks;
  above->parts[0] = world;
  return above;
}

WorldRef join_ways(WorldJoins& joins, const WorldRef& a, const WorldRef& b) {
  World both;
  both.height = a->height;
  bool is_a = true, is_b = true;
  for (u32 i = 0; i < World::kWays; ++i) {
    if (a->height == 0) {
      both.times[i] = join_times(a->times[i], b->times[i]);
      is_a &= both.times[i] == a->times[i], is_b &= both.times[i] == b->times[i];
      both.blocks += both.times[i] != nullptr ? 1 : 0;
    } else {
      both.parts[i] = join_worlds(joins, a->parts[i], b->parts[i]);
      is_a &= both.parts[i] == a->parts[i], is_b &= both.parts[i] == b->parts[i];
      if (both.parts[i] == nullptr) continue;
      both.blocks += both.parts[i]->blocks;
      both.everything |= both.parts[i]->everything;
    }
  }
  if (is_a || is_b) return is_a ? a : b;
  if (both.everything || both.blocks > joins.blocks_max) {
    both = {};
    both.everything = true;
  }
  return std::make_shared<World>(std::move(both));
}

}  // namespace

TimesRef join_times(const TimesRef& a, const TimesRef& b) {
  if (a == b || b == nullptr) return a;
  if (a == nullptr) return b;
  bool is_a = true, is_b = true;
  for (std::size_t i = 0; i < a->size(); ++i)
    is_a &= (*a)[i] >= (*b)[i], is_b &= (*b)[i] >= (*a)[i];
  if (is_a || is_b) return is_a ? a : b;
  auto both = std::make_shared<Times>(*a);
  for (std::size_t i = 0; i < a->size(); ++i) (*both)[i] = std::max((*a)[i], (*b)[i]);
  return both;
}

WorldRef join_worlds(WorldJoins& joins, const WorldRef& a, const WorldRef& b) {
  if (b == nullptr || a == b || (a != nullptr && a->everything)) return a;
  if (a == nullptr || b->everything) return b;
  if (a->height < b->height) return join_worlds(joins, raised(a), b);
  if (b->height < a->height) return join_worlds(joins, a, raised(b));
  if (joins.lately.empty()) joins.lately.resize(kJoinsKept);
  const u64 key = reinterpret_cast<u64>(a.get()) / 64 * 31 + reinterpret_cast<u64>(b.get()) / 64;
  WorldJoins::Join& lately = joins.lately[(key ^ key >> 10) % joins.lately.size()];
  if (lately.a != a || lately.b != b) lately = {a, b, join_ways(joins, a, b)};
  return lately.both;
}

WorldRef world_with(WorldJoins& joins, const WorldRef& world, u64 block, const TimesRef& times) {
  auto one = std::make_shared<World>();
  one->blocks = 1;
  one->times[way_of(block, 0)] = times;
  while (!holds(one->height, block)) {
    auto above = std::make_shared<World>();
    above->height = one->height + 1, above->blocks = 1;
    above->parts[way_of(block, above->height)] = std::move(one);
    one = std::move(above);
  }
  return join_worlds(joins, world, one);
}

const TimesRef& times_of(const WorldRef& world, u64 block) {
  static const TimesRef kNothing;
  if (world == nullptr || !holds(world->height, block)) return kNothing;
  const World* at = world.get();
  while (at != nullptr && at->height != 0) at = at->parts[way_of(block, at->height)].get();
  return at == nullptr ? kNothing : at->times[way_of(block, 0)];
}

}  // namespace attest::emulator
