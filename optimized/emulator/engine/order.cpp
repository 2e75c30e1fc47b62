// The race checker's view of synchronisation: vector clocks, one per thread, shared by the lanes of
// a warp as long as they know the same. A time counts the events of a block; an access at time t is
// known to whoever knows the thread up to t.
#include "optimized/emulator/engine/order.hpp"

#include <algorithm>

#include "optimized/emulator/engine/checks/state.hpp"

namespace attest::emulator {
namespace {

BlockChecks* racing(const Warp& w) {
  return w.watch & kWatchRace ? w.block->checks.get() : nullptr;
}

WorldJoins& joins_of(const Warp& w) {
  return w.block->launch->checks->joins;
}

void join_into(const Warp& w, WorldRef& a, const WorldRef& b) {
  a = join_worlds(joins_of(w), a, b);
}

/// What is known with a world besides.
ClockRef join_world(const Warp& w, const ClockRef& known, const WorldRef& world) {
  if (world == nullptr) return known;
  BlockChecks& c = *w.block->checks;
  if (c.joined.from == known && c.joined.with == world) return c.joined.both;
  Clock both = *known;
  join_into(w, both.others, world);
  both.own = join_times(both.own, times_of(world, w.block->number));
  c.joined = {known, world, std::make_shared<Clock>(std::move(both))};
  return c.joined.both;
}

void join_clock(const Warp& w, ClockRef& a, const ClockRef& b) {
  if (b == nullptr || a == b) return;
  if (a == nullptr) {
    a = b;
    return;
  }
  Clock both{join_times(a->own, b->own), a->others};
  join_into(w, both.others, b->others);
  if (both.own == a->own && both.others == a->others) return;
  a = std::make_shared<Clock>(std::move(both));
}

/// The clock with own accesses of some lanes of a warp up to a time.
void add_lanes(ClockRef& a, const Warp& w, u32 lanes, u32 time) {
  auto times = std::make_shared<Times>(*a->own);
  for (u32 left = lanes & w.existing; left; left &= left - 1) {
    u32& t = (*times)[w.index * kLanes + u32(__builtin_ctz(left))];
    t = std::max(t, time);
  }
  a = std::make_shared<Clock>(Clock{std::move(times), a->others});
}

/// Adds to `sum` what the lanes know, have made visible and have heard.
void gather(Knowledge& sum, BlockChecks& c, Warp& w, u32 lanes) {
  WarpOrder& o = c.order[w.index];
  for (u32 left = o.together ? 1u : lanes; left; left &= left - 1) {
    const Knowledge& k = o.of(u32(__builtin_ctz(left)));
    join_clock(w, sum.known, join_world(w, k.known, k.heard));
  }
  add_lanes(sum.known, w, lanes, c.time);
  for (u32 left = c.plain ? 0 : lanes; left; left &= left - 1) {
    const u32 lane = u32(__builtin_ctz(left));
    const Knowledge& k = o.of(lane);
    for (u32 r = 0; r < 2; ++r) {
      if (k.visible[r] == nullptr) continue;
      join_clock(w, sum.visible[r], k.visible[r]);
      if ((*sum.visible[r]->own)[w.index * kLanes + lane] < k.visible_time[r])
        add_lanes(sum.visible[r], w, 1u << lane, k.visible_time[r]);
    }
  }
}

void spread(WarpOrder& o) {
  if (!o.together) return;
  o.together = false;
  o.lanes.resize(kLanes, o.lanes[0]);
}

/// Lanes that all know the same are one again.
void regather(Warp& w, WarpOrder& o) {
  if (o.together || w.live == 0) return;
  const Knowledge& first = o.lanes[u32(__builtin_ctz(w.live))];
  for (u32 left = w.live; left; left &= left - 1) {
    const Knowledge& k = o.lanes[u32(__builtin_ctz(left))];
    if (k.known != first.known || k.heard != first.heard) return;
    for (u32 r = 0; r < 2; ++r) {
      if (k.visible[r] != first.visible[r] || k.visible_time[r] != first.visible_time[r]) return;
    }
  }
  o.lanes = {Knowledge(first)};
  o.together = true;
}

void assign(Warp& w, BlockChecks& c, u32 lanes, const Knowledge& k) {
  WarpOrder& o = c.order[w.index];
  if ((w.live & ~lanes) == 0) {
    o.lanes.assign(1, k);
    o.together = true;
  } else {
    spread(o);
    for (u32 left = lanes; left; left &= left - 1) o.lanes[u32(__builtin_ctz(left))] = k;
  }
  show_knowledge(*w.block, w.index);
}

void tick(Block& block) {
  ++block.checks->time;
  show_time(block);
}

std::unordered_map<u64, Given>& given_map(Warp& w, u64 place) {
  const bool shared = place - reinterpret_cast<u64>(w.shared) < w.shared_bytes;
  return shared ? w.block->checks->given : w.block->launch->checks->given;
}

/// A world that is this clock of a block, with own accesses of one lane.
WorldRef world_of(Warp& w, u32 lane, ClockRef clock, u32 time) {
  if ((*clock->own)[w.index * kLanes + lane] < time) add_lanes(clock, w, 1u << lane, time);
  return world_with(joins_of(w), clock->others, w.block->number, clock->own);
}

void give_within(Given& given, const Warp& w, const WorldRef& world) {
  if (given.block != w.block->number) given.within = nullptr;
  given.block = w.block->number;
  join_into(w, given.within, world);
  join_into(w, given.within, given.beyond);
}

/// What a place was given that reaches the block of the warp, or nullptr.
WorldRef given_to(Warp& w, u64 place, Reach reach) {
  const auto& map = given_map(w, place);
  const auto it = map.find(place);
  if (it == map.end()) return nullptr;
  if (it->second.block == w.block->number) return it->second.within;
  return reach == Reach::device ? it->second.beyond : nullptr;
}

}  // namespace

u32 known_time(Warp& w, u32 lane, u64 block, u32 thread) {
  return known_time_of_any(w, lane, block, thread, 1);
}

u32 known_time_of_any(Warp& w, u32 lane, u64 block, u32 first, u32 count) {
  const Clock& known = *w.block->checks->order[w.index].of(lane).known;
  const Times* times = known.own.get();
  if (block != w.block->number) {
    if (known.others == nullptr) return 0;
    if (known.others->everything) return ~0u;
    times = times_of(known.others, block).get();
    if (times == nullptr) return 0;
  }
  u32 latest = 0;
  for (u32 i = first; i < std::min<u32>(first + count, u32(times->size())); ++i)
    latest = std::max(latest, (*times)[i]);
  return latest;
}

void order_block(Block& block) {
  if (block.checks == nullptr || block.checks->order.empty()) return;
  BlockChecks& c = *block.checks;
  Knowledge sum;
  if (!c.plain) {
    for (Warp& w : block.warps) gather(sum, c, w, w.existing);
  }
  const u32 threads = block.launch->threads_per_block;
  sum.known = std::make_shared<Clock>(
      Clock{std::make_shared<Times>(threads, c.time), sum.known ? sum.known->others : nullptr});
  for (Warp& w : block.warps) {
    WarpOrder& o = c.order[w.index];
    o.together = true;
    o.lanes.assign(1, sum);
  }
  c.sets.clear(), c.merged.clear();  // no stamp that is not known refers to them
  ++c.time;
  show_knowledge(block, 0);
  for (u32 i = 1; i < c.watching.size(); ++i) {
    Watching& v = c.watching[i];
    std::copy(c.watching[0].known, c.watching[0].known + kLanes, v.known);
    v.least = c.watching[0].least, v.together = 1;
  }
  show_time(block);
}

void order_arrive(Warp& w, u32 lanes, u32 number) {
  BlockChecks* c = racing(w);
  if (c == nullptr) return;
  c->barriers[number].used = true;
  gather(c->barriers[number].sum, *c, w, lanes);
  tick(*w.block);
}

void order_leave(Warp& w, u32 lanes, u32 number) {
  BlockChecks* c = racing(w);
  if (c != nullptr && c->barriers[number].used) assign(w, *c, lanes, c->barriers[number].sum);
}

void order_barrier_done(Block& block, u32 number) {
  if (block.checks != nullptr && !block.checks->order.empty()) block.checks->barriers[number] = {};
}

void order_lanes(Warp& w, u32 lanes) {
  BlockChecks* c = racing(w);
  if (c == nullptr) return;
  WarpOrder& o = c->order[w.index];
  Knowledge& k = o.lanes[0];
  if (o.together && c->plain && (w.live & ~lanes) == 0 && k.known.use_count() == 1 &&
      k.known->own.use_count() == 1) {
    Times& own = const_cast<Times&>(*k.known->own);  // nobody else has it
    for (u32 left = lanes & w.existing; left; left &= left - 1)
      own[w.index * kLanes + u32(__builtin_ctz(left))] = c->time;
    show_knowledge(*w.block, w.index);
  } else {
    Knowledge sum;
    gather(sum, *c, w, lanes);
    assign(w, *c, lanes, sum);
  }
  tick(*w.block);
}

void order_confer(Warp& w, u32 lanes) {
  BlockChecks* c = racing(w);
  if (c == nullptr || c->order[w.index].together) return;
  WarpOrder& o = c->order[w.index];
  ClockRef sum;
  for (u32 left = lanes; left; left &= left - 1)
    join_clock(w, sum, o.lanes[u32(__builtin_ctz(left))].known);
  const std::size_t first = std::size_t(w.index) * kLanes;
  ClockRef last;
  for (u32 left = lanes; left; left &= left - 1) {
    ClockRef& known = o.lanes[u32(__builtin_ctz(left))].known;
    auto times = std::make_shared<Times>(*sum->own);
    const std::size_t end = std::min(first + kLanes, times->size());
    std::copy(known->own->begin() + s64(first), known->own->begin() + s64(end),
              times->begin() + s64(first));
    if (last == nullptr || *last->own != *times)
      last = std::make_shared<Clock>(Clock{std::move(times), sum->others});
    known = last;
  }
  regather(w, o);
  show_knowledge(*w.block, w.index);
}

void order_fence(Warp& w, u32 lanes, Reach reach) {
  BlockChecks* c = racing(w);
  if (c == nullptr) return;
  c->plain = false;
  order_take(w, lanes, reach);
  WarpOrder& o = c->order[w.index];
  if ((w.live & ~lanes) != 0) spread(o);
  for (u32 left = o.together ? 1u : lanes; left; left &= left - 1) {
    Knowledge& k = o.of(u32(__builtin_ctz(left)));
    for (u32 r = 0; r <= u32(reach); ++r) k.visible[r] = k.known, k.visible_time[r] = c->time;
  }
  show_knowledge(*w.block, w.index);
  tick(*w.block);
}

void order_take(Warp& w, u32 lanes, Reach reach) {
  BlockChecks* c = racing(w);
  if (c == nullptr || c->plain) return;
  WarpOrder& o = c->order[w.index];
  for (u32 left = o.together ? 1u : lanes; left; left &= left - 1) {
    Knowledge& k = o.of(u32(__builtin_ctz(left)));
    if (k.heard == nullptr) continue;
    if (reach == Reach::device) {
      k.known = join_world(w, k.known, k.heard);
      k.heard = nullptr;
    } else if (const TimesRef& own = times_of(k.heard, w.block->number); own != nullptr) {
      k.known = std::make_shared<Clock>(Clock{join_times(k.known->own, own), k.known->others});
    }
  }
  regather(w, o);
  show_knowledge(*w.block, w.index);
}

void order_hear(Warp& w, u32 lane, u64 place, Reach reach) {
  BlockChecks* c = racing(w);
  if (c == nullptr) return;
  const WorldRef world = given_to(w, place, reach);
  if (world == nullptr) return;
  WarpOrder& o = c->order[w.index];
  c->plain = false;
  spread(o);
  join_into(w, o.lanes[lane].heard, world);
  show_knowledge(*w.block, w.index);
}

void order_give(Warp& w, u32 lane, u64 place, Reach reach, bool continues) {
  BlockChecks* c = racing(w);
  if (c == nullptr) return;
  auto& map = given_map(w, place);
  const Knowledge& k = c->order[w.index].of(lane);
  if (k.visible[0] == nullptr) {
    if (!continues) map.erase(place);
    return;
  }
  Given& given = map[place];
  if (!continues) given = {};
  if (reach == Reach::device && k.visible[1] != nullptr)
    join_into(w, given.beyond, world_of(w, lane, k.visible[1], k.visible_time[1]));
  give_within(given, w, world_of(w, lane, k.visible[0], k.visible_time[0]));
}

void order_release(Warp& w, u32 lane, u64 place, Reach reach) {
  BlockChecks* c = racing(w);
  if (c == nullptr) return;
  Given& given = given_map(w, place)[place];
  const WorldRef world = world_of(w, lane, c->order[w.index].of(lane).known, c->time);
  if (reach == Reach::device) join_into(w, given.beyond, world);
  give_within(given, w, world);
  tick(*w.block);
}

void order_acquire(Warp& w, u32 lane, u64 place, Reach reach) {
  BlockChecks* c = racing(w);
  if (c == nullptr) return;
  const WorldRef world = given_to(w, place, reach);
  if (world == nullptr) return;
  WarpOrder& o = c->order[w.index];
  spread(o);
  Knowledge& k = o.lanes[lane];
  k.known = join_world(w, k.known, world);
  if (w.live >> lane <= 1) regather(w, o);  // the last lane
  show_knowledge(*w.block, w.index);
}

}  // namespace attest::emulator
