// Which block runs when. A host thread keeps several blocks going in turn when they poll memory
// that others may write, so that grid-wide waits make progress; blocks that cannot see each other
// are spread over several host threads. A seed changes the order in which blocks start and take
// turns.
#include <algorithm>
#include <deque>
#include <numeric>
#include <thread>

#include "optimized/emulator/engine/block.hpp"
#include "optimized/emulator/engine/counting.hpp"
#include "optimized/emulator/own_work.hpp"

namespace attest::emulator {
namespace {

// Long enough that ordinary blocks finish in few turns, short enough that a spin is left soon.
constexpr s64 kBlockQuantum = 1 << 16;
// Blocks start in order but for this: so many in a row start in any order. Those that wait for an
// earlier block, which hardware starts first, still find it resident or gone.
constexpr u64 kStartWindow = 64;
// Of a block that only polled: others are waited for. Prime, so that turns end all over a loop.
constexpr s64 kQuietQuantum = 257;
// Of the limit of instructions: what starting a block takes beside what it executes.
constexpr s64 kBlockCost = 64;
constexpr u32 kEagerMax = 8, kQuantumShifts = 12;

/// Floating-point control as PTX assumes: nearest, no flushing, no traps. Restored at the end.
class HostRounding {
 public:
  HostRounding() : saved_(__builtin_ia32_stmxcsr()) { __builtin_ia32_ldmxcsr(0x1f80); }
  ~HostRounding() { __builtin_ia32_ldmxcsr(saved_); }
  HostRounding(const HostRounding&) = delete;
  HostRounding& operator=(const HostRounding&) = delete;

 private:
  unsigned saved_;
};

class Worker {
 public:
  Worker(LaunchState& launch, std::atomic<u64>& next, bool watches)
      : launch_(launch), next_(next), watches_(watches) {
    if (launch.options.counters) room_ = take_room(launch);
    if (blocks_are_independent(launch)) return;  // no order of blocks can matter
    schedule_ = Schedule(launch.options.schedule, launch.number, kWholeLaunch);
    if (schedule_.permutes()) eager_ = 1 + schedule_.below(kEagerMax);
  }

  void work() {
    run_blocks();
    if (room_ != nullptr) give_room(launch_, room_);
  }

 private:
  void run_blocks() {
    const HostRounding rounding;
    bool wants_more = true;
    for (;;) {
      if (wants_more && resident_.size() < launch_.resident_max) claim();
      if (resident_.empty()) return;
      std::unique_ptr<Block> block = take();
      if (block->number > launch_.fault_block_seen.load())
        continue;  // an earlier block has faulted
      bool polled = false;
      const Progress progress = run_block(*block, quantum(*block), polled);
      if (progress != Progress::paused || !polled || block->wrote) moved();
      block->idled = watches_ && polled && !block->wrote;
      block->wrote = false;
      wants_more = progress != Progress::paused || polled || resident_.size() + 1 < eager_;
      if (progress == Progress::paused && polled && is_deadlock(*block)) {
        resident_.push_back(std::move(block));
        report_deadlock();
      } else if (progress == Progress::paused) {
        if (polled || schedule_.permutes())
          resident_.push_back(std::move(block));
        else
          resident_.push_front(std::move(block));
      } else {
        retire(std::move(block));
      }
    }
  }

  /// Short turns show more of what blocks may do to each other; long ones cost less.
  s64 quantum(const Block& block) {
    if (block.idled) return kQuietQuantum;
    return schedule_.permutes() ? kBlockQuantum >> schedule_.below(kQuantumShifts) : kBlockQuantum;
  }

  u64 started() const { return std::min(next_.load(), launch_.blocks); }

  /// Somebody may have changed what others wait for.
  void moved() {
    ++epoch_;
    quiet_turns_ = spinning_ = 0;
  }

  /// After a turn in which the block polled and nobody wrote: true when all that may run only do
  /// so.
  bool is_deadlock(Block& block) {
    const bool full = resident_.size() + 1 >= launch_.resident_max || started() == launch_.blocks;
    if (!watches_ || ++quiet_turns_ <= 2 * resident_.size() + 2 || !full) return false;
    const bool known = block.spin.epoch == epoch_ && block.spin.spins;
    if (known || !spins_for_ever(block, epoch_)) return false;
    block.spin.spins = true;
    return ++spinning_ == resident_.size() + 1;
  }

  /// The first block by number says so, as with every other fault.
  void report_deadlock() {
    const auto first =
        std::min_element(resident_.begin(), resident_.end(),
                         [](const auto& a, const auto& b) { return a->number < b->number; });
    report_spinning(**first, resident_.size(), launch_.blocks - started());
    resident_.erase(first);
  }

  std::unique_ptr<Block> take() {
    const std::size_t at = schedule_.permutes() ? schedule_.below(u32(resident_.size())) : 0;
    std::swap(resident_[at], resident_.front());
    std::unique_ptr<Block> block = std::move(resident_.front());
    resident_.pop_front();
    return block;
  }

  /// The number of the block that starts as the n-th.
  u64 started_as(u64 n) {
    if (!schedule_.permutes()) return n;
    if (n >= window_begin_ + window_.size()) {
      window_begin_ = n;
      window_.resize(std::min({kStartWindow, launch_.resident_max, launch_.blocks - n}));
      std::iota(window_.begin(), window_.end(), n);
      for (std::size_t i = window_.size(); i > 1; --i)
        std::swap(window_[i - 1], window_[schedule_.below(u32(i))]);
    }
    return window_[n - window_begin_];
  }

  void claim() {
    for (u64 n = next_.fetch_add(1); n < launch_.blocks; n = next_.fetch_add(1)) {
      const u64 number = started_as(n);
      if (number > launch_.fault_block_seen.load()) continue;
      std::unique_ptr<Block> block;
      if (spare_.empty()) {
        block = std::make_unique<Block>();
        block->room = room_.get();
      } else {
        block = std::move(spare_.back());
        spare_.pop_back();
      }
      start_block(*block, launch_, number);
      if (launch_.limited)
        launch_.instructions_left.fetch_sub(kBlockCost, std::memory_order_relaxed);
      resident_.push_front(std::move(block));
      return;
    }
  }

  void retire(std::unique_ptr<Block> block) {
    if (!block->printed.empty()) {
      const std::scoped_lock lock(launch_.mutex);
      launch_.printed.emplace_back(block->number, std::move(block->printed));
    }
    if (!block->faulted) spare_.push_back(std::move(block));
  }

  LaunchState& launch_;
  std::atomic<u64>& next_;
  Schedule schedule_;
  std::vector<u64> window_;
  u64 window_begin_ = 0;
  u64 epoch_ = 1, quiet_turns_ = 0, spinning_ = 0;
  bool watches_;                     // all blocks of the launch run here
  std::size_t eager_ = 1;            // blocks that take turns though none waits for another
  std::shared_ptr<CountRoom> room_;  // outlives the blocks
  std::deque<std::unique_ptr<Block>> resident_;
  std::vector<std::unique_ptr<Block>> spare_;
};

}  // namespace

bool blocks_are_independent(const LaunchState& launch) {
  const bool races = launch.options.checks.racecheck && launch.blocks > 1;
  return !launch.program->communicates && !launch.cooperative && !races;
}

bool run_launch(LaunchState& launch, unsigned threads) {
  std::atomic<u64> next{0};
  const bool independent = blocks_are_independent(launch);
  launch.shares_clock = !independent;
  if (launch.cooperative) launch.resident_max = launch.blocks;
  const u64 useful = independent ? std::min<u64>(std::max(threads, 1u), launch.blocks) : 1;
  // Not when several threads merely happened not to be asked for: they must change nothing.
  const bool all_here = !independent || launch.blocks == 1;
  std::vector<std::thread> others;
  for (u64 i = 1; i < useful; ++i)
    others.emplace_back([&, at = OwnWork::now()] {
      const OwnWork own(at);  // what whoever asked for the launch is at
      Worker(launch, next, all_here).work();
    });
  Worker(launch, next, all_here).work();
  for (std::thread& t : others) t.join();
  std::sort(launch.printed.begin(), launch.printed.end());
  return launch.fault_block == ~u64{0};
}

}  // namespace attest::emulator
