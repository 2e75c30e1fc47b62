// Judges accesses to global memory, by threads of any block. A launch begins after what came before
// it, so its shadow starts empty. Two readers per cell are kept, of different blocks when there
// are; when a third comes a race may be missed, but no alarm is false.
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "optimized/emulator/engine/checks/state.hpp"

namespace attest::emulator {
namespace {

constexpr u32 kPageShift = 12,
              kCellShiftMax = 4;  // sixteen bytes: most that a lane moves at a time
constexpr u32 kCellsSummed = 4;   // by a word of FarPage::quiet
constexpr u32 kSumsAhead = 8;     // of these words, looked at together: what a warp reads at a time
constexpr u64 kUntouched = ~u64{0};  // the same: nobody came, and the cells hold anything
constexpr u64 kInPage = (u64{1} << kPageShift) - 1;
constexpr u64 kShadowBytesMax = u64{1} << 30;  // per launch; accesses beyond are not judged
// Of the times of blocks that anybody knows, per launch. Blocks beyond count as known: their races
// are missed, and no alarm is false. A thread takes four bytes: room for 262,144 blocks of 256.
constexpr u64 kKnownBytesMax = u64{1} << 28;
constexpr u32 kTimeShift = 38, kBlockShift = 14;
constexpr u64 kBlockMask = (u64{1} << 24) - 1;
constexpr FarStamp kMulti = 1 << 10, kWide = 1 << 11, kStrongFar = 1 << 12, kBeyond = 1 << 13;

u64 block_of(FarStamp s) {
  return (s >> kBlockShift) & kBlockMask;
}
u32 time_of(FarStamp s) {
  return u32(s >> kTimeShift);
}
u32 thread_of(FarStamp s) {
  return u32(s & 1023);
}
FarStamp who(FarStamp s) {
  return s & (kBlockMask << kBlockShift | kMulti | kWide | 1023);
}

/// Empty cells of 1 << shift bytes, or nullptr when there is no room.
std::unique_ptr<FarPage> empty_page(LaunchChecks& c, u32 shift) {
  const u64 count = (kInPage + 1) >> shift;
  if (c.bytes + count * sizeof(FarCell) > kShadowBytesMax) return nullptr;
  c.bytes += count * sizeof(FarCell);
  std::unique_ptr<FarPage> page;
  if (c.spare.empty()) {
    page = std::make_unique<FarPage>();
  } else {
    page = std::move(c.spare.back());
    c.spare.pop_back();
  }
  page->shift = shift;
  page->cells.resize(count);
  page->quiet.assign(count / kCellsSummed, kUntouched);
  return page;
}

/// Each cell becomes several that say the same. False: there is no room.
bool divide(LaunchChecks& c, FarPage& page, u32 shift) {
  const u64 count = (kInPage + 1) >> shift, more = count - page.cells.size();
  if (c.bytes + more * sizeof(FarCell) > kShadowBytesMax) return false;
  c.bytes += more * sizeof(FarCell);
  std::vector<FarCell> cells(count);
  for (u64 i = 0; i < count; ++i) {
    const u64 from = i >> (page.shift - shift);
    if (page.quiet[from / kCellsSummed] != kUntouched) cells[i] = page.cells[from];
  }
  page.cells = std::move(cells);
  page.quiet.assign(count / kCellsSummed, 0);
  page.shift = shift;
  return true;
}

/// The page of `place`, with cells no wider than `shift` says; nullptr when there is no room.
FarPage* page_of(LaunchChecks& c, u64 place, u32 shift) {
  const u64 number = place >> kPageShift;
  LaunchChecks::Near& near = c.near[number % std::size(c.near)];
  if (near.number != number) {
    auto it = c.pages.find(number);
    if (it == c.pages.end()) {
      std::unique_ptr<FarPage> page = empty_page(c, shift);
      if (page == nullptr) return nullptr;
      it = c.pages.emplace(number, std::move(page)).first;
    }
    near = {number, it->second.get()};
  }
  if (near.page->shift > shift && !divide(c, *near.page, shift)) return nullptr;
  return near.page;
}

/// The blocks of both readers, as FarPage::quiet keeps them; 0 while there is room for another.
u64 read_by(const FarCell& cell) {
  if (cell.readers[0] == 0 || cell.readers[1] == 0) return 0;
  return (block_of(cell.readers[1]) + 1) << 32 | (block_of(cell.readers[0]) + 1);
}

struct FarJudge {
  const Op& op;
  Warp& w;
  u32 lane;
  Access access;
  u64 address;
  u32 bytes;
  const u64* at;  // of all lanes
  FarStamp mine;
  const Clock& known;

  /// A read of what nobody has written in this launch, with no room for another reader.
  bool is_idle(const FarCell& cell) const {
    const FarStamp a = cell.readers[0], b = cell.readers[1];
    if (cell.writer != 0 || access != Access::read) return false;
    if (a == mine || b == mine) return true;
    return known.others == nullptr && a != 0 && b != 0 && block_of(a) != block_of(mine) &&
           block_of(b) != block_of(mine);
  }

  /// The same of four cells at once: FarPage::quiet.
  bool is_quiet(u64 blocks) const {
    const u64 me = block_of(mine) + 1;
    return blocks != 0 && blocks != kUntouched && access == Access::read &&
           known.others == nullptr && u32(blocks) != me && blocks >> 32 != me;
  }

  bool is_ordered(FarStamp s) const {
    if (s == 0 || who(s) == who(mine)) return true;
    const u64 block = block_of(s);
    if (block != block_of(mine) && known.others == nullptr) return false;
    u32 first = thread_of(s), count = 1;
    if (s & kMulti) first &= ~31u, count = kLanes;
    if (s & kWide) first = 0, count = w.block->launch->threads_per_block;
    return time_of(s) <= known_time_of_any(w, lane, block, first, count);
  }

  /// Atomics and volatile accesses may meet, when each reaches the other's block.
  bool may_meet(FarStamp s) const {
    if (!(s & mine & kStrongFar)) return false;
    return block_of(s) == block_of(mine) || (s & mine & kBeyond);
  }

  std::string thread_text(FarStamp s) const {
    const LaunchState& l = *w.block->launch;
    const u64 b = block_of(s);
    const std::string block =
        fmt::format("block ({},{},{})", b % l.grid[0], b / l.grid[0] % l.grid[1],
                    b / (u64(l.grid[0]) * l.grid[1]));
    if (s & kWide) return "threads of " + block;
    if (s & kMulti) return fmt::format("threads of warp {} of {}", thread_of(s) / kLanes, block);
    const u32 t = thread_of(s);
    return fmt::format("thread ({},{},{}) of {}", t % l.extent[0], t / l.extent[0] % l.extent[1],
                       t / (l.extent[0] * l.extent[1]), block);
  }

  void report(FarStamp other, u16 other_op, std::string_view did) const {
    if (!report_once(w, op, kWatchRace)) return;
    std::string where = other_op == kUnknownOp ? "" : access_text(*w.block->launch, other_op);
    if (!where.empty()) where = " at " + where;
    const bool near = block_of(other) == block_of(mine);
    const bool narrow = (other & mine & kStrongFar) != 0;
    const std::string_view missing =
        narrow ? "one of the two is atomic for its own block only (.cta)"
        : near ? "a barrier between them is missing"
               : "a fence (__threadfence) with a flag or an atomic, or a grid-wide barrier between "
                 "them is missing";
    note(
        w, op, lane, "racecheck",
        fmt::format("{} {} bytes of global memory at {:#x}, which {} {}{}; nothing orders the two: "
                    "{}",
                    access == Access::read    ? "reads"
                    : access == Access::write ? "writes"
                                              : "updates",
                    bytes, address, thread_text(other), did, where, missing));
  }

  bool is_silent(FarStamp other, u64 place, u32 width) const {
    u8 value[32], theirs[32];
    if (access != Access::write || bytes > sizeof value || !stored_bytes(op, w, lane, bytes, value))
      return false;
    const u32 l = thread_of(other) % kLanes;
    const bool same_operation = block_of(other) == block_of(mine) &&
                                thread_of(other) / kLanes == w.index && ((w.mask >> l) & 1) &&
                                time_of(other) == time_of(mine);
    if (same_operation && at[l] <= place && place + width <= at[l] + bytes &&
        stored_bytes(op, w, l, bytes, theirs))
      return std::memcmp(value + (place - address), theirs + (place - at[l]), width) == 0;
    return std::memcmp(reinterpret_cast<const void*>(place), value + (place - address), width) == 0;
  }

  /// Where the readers of a block are kept, or can be.
  void add_reader(FarCell& cell) const {
    const u16 fresh_op = u16(std::min(op.cache, kUnknownOp));
    for (u32 i = 0; i < 2; ++i) {
      FarStamp& s = cell.readers[i];
      if (s == mine) return;
      if (is_ordered(s)) {
        s = mine, cell.reader_ops[i] = fresh_op;
        return;
      }
      if (block_of(s) != block_of(mine)) continue;
      // The earlier time, for all of them: a race may be missed, but no alarm is false.
      const u64 time = std::min(time_of(s), time_of(mine));
      const FarStamp kind = thread_of(s) / kLanes == w.index ? s & kWide : kWide;
      const FarStamp strong = s & mine & (kStrongFar | kBeyond);
      s = time << kTimeShift | block_of(mine) << kBlockShift | strong | kind | kMulti |
          (thread_of(mine) | 31);
      cell.reader_ops[i] = fresh_op;
      return;
    }
  }

  void judge(FarCell& cell, u64 place, u32 width) const {
    if (cell.writer != 0 && !may_meet(cell.writer) && !is_ordered(cell.writer) &&
        !is_silent(cell.writer, place, width))
      report(cell.writer, cell.writer_op, access == Access::read ? "wrote" : "wrote as well");
    if (access == Access::read) {
      add_reader(cell);
      return;
    }
    for (u32 i = 0; i < 2; ++i) {
      const FarStamp s = cell.readers[i];
      if (s != 0 && !may_meet(s) && !is_ordered(s)) report(s, cell.reader_ops[i], "read");
      cell.readers[i] = 0;
    }
    // An atomic hides no plain write that its own thread made since the last event (racecheck.cpp).
    constexpr FarStamp kEither = kStrongFar | kBeyond;
    const bool hides = !(cell.writer & kStrongFar) && (cell.writer | (mine & kEither)) == mine &&
                       cell.writer != mine;
    if (!hides) cell.writer = mine, cell.writer_op = u16(std::min(op.cache, kUnknownOp));
  }
};

/// A stretch of cells in which nothing changes by reads of this warp.
struct Quiet {
  u64 begin = 0, end = 0;
  bool holds(u64 address, u32 bytes) const { return address >= begin && address + bytes <= end; }
};

/// Sums up the four cells from `first` on, when reads of the warp change none of them.
u64 sum_up(const FarJudge& judge, const FarCell* first) {
  for (u32 i = 0; i < kCellsSummed; ++i) {
    if (!judge.is_idle(first[i]) || read_by(first[i]) != read_by(first[0])) return 0;
  }
  return read_by(first[0]);
}

/// All cells that an access touches.
void judge_cells(LaunchChecks& c, const FarJudge& judge, u32 least, Quiet& quiet) {
  const u64 end = judge.address + judge.bytes;
  const u32 fitting = u32(std::countr_zero(judge.address | end | 1u << kCellShiftMax));
  for (u64 place = judge.address; place < end;) {
    FarPage* page = page_of(c, place, std::max(least, fitting));
    if (page == nullptr) return;
    const u64 index = (place & kInPage) >> page->shift, step = u64{1} << page->shift;
    place &= ~(step - 1);
    u64& blocks = page->quiet[index / kCellsSummed];
    if (judge.is_quiet(blocks)) {
      const u64 *word = &blocks + 1, *last = &blocks + kSumsAhead;
      const u64* const sums = page->quiet.data() + page->quiet.size();
      while (word < std::min(last, sums) && *word == blocks) ++word;
      quiet.begin = place - index % kCellsSummed * step;
      quiet.end = place = quiet.begin + u64(word - &blocks) * kCellsSummed * step;
      continue;
    }
    FarCell& cell = page->cells[index];
    if (blocks == kUntouched) {
      std::fill_n(&cell - index % kCellsSummed, kCellsSummed, FarCell{});
      blocks = 0;
    }
    place += step;
    if (!judge.is_idle(cell)) {
      judge.judge(cell, place - step, u32(step));
      blocks = 0;
    } else if (index % kCellsSummed == kCellsSummed - 1) {
      blocks = sum_up(judge, &cell - (kCellsSummed - 1));
    }
  }
}

}  // namespace

void start_launch_checks(LaunchChecks& c, u32 threads_per_block) {
  c.joins.lately.clear();
  c.joins.blocks_max = kKnownBytesMax / (threads_per_block * sizeof(u32));
  constexpr std::size_t kSpareMax = 4096;
  for (auto& [number, page] : c.pages) {
    if (c.spare.size() < kSpareMax) c.spare.push_back(std::move(page));
  }
  c.pages.clear();
  c.given.clear();
  std::fill(std::begin(c.near), std::end(c.near), LaunchChecks::Near{});
  c.bytes = 0;
}

void race_far(const Op& op, Warp& w, u32 lanes, Access access, const u64* at, u32 bytes, u8 flags) {
  LaunchState& launch = *w.block->launch;
  LaunchChecks& c = *launch.checks;
  const u64 block = w.block->number, time = w.block->checks->time;
  if (block >= kBlockMask || time >> 26 != 0) return;  // stamps have no room for these
  const u64 strong =
      flags & kStrong ? kStrongFar | (flags & kBlockReach ? FarStamp{0} : kBeyond) : FarStamp{0};
  const FarStamp mine = time << kTimeShift | block << kBlockShift | strong | w.index * kLanes;
  WarpOrder& order = w.block->checks->order[w.index];
  const u32 least = std::min<u32>(launch.program->global_granule, 2);
  Quiet quiet;
  for (u32 left = lanes; left; left &= left - 1) {
    const u32 lane = u32(__builtin_ctz(left));
    if (quiet.holds(at[lane], bytes)) continue;
    FarJudge judge{op, w, lane, access, at[lane], bytes, at, mine | lane, *order.of(lane).known};
    judge_cells(c, judge, least, quiet);
    if (!order.together) quiet = {};  // what holds for a lane need not for the next
  }
}

}  // namespace attest::emulator
