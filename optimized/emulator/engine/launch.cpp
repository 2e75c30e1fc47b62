// Spreads the blocks of a launch over host threads. Each thread keeps a few blocks going in turn
// when they poll memory that others may write, so that grid-wide waits make progress.
#include <algorithm>
#include <deque>
#include <thread>

#include "optimized/emulator/engine/block.hpp"

namespace attest::emulator {
namespace {

// Long enough that ordinary blocks finish in few turns, short enough that a spin is left soon.
constexpr s64 kBlockQuantum = 1 << 16;
// Blocks one host thread keeps going when they wait for each other without a cooperative launch.
constexpr std::size_t kResident = 64;

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
  Worker(LaunchState& launch, std::atomic<u64>& next) : launch_(launch), next_(next) {}

  void work() {
    const HostRounding rounding;
    bool wants_more = true;
    for (;;) {
      if (wants_more && resident_.size() < limit()) claim();
      if (resident_.empty()) return;
      std::unique_ptr<Block> block = std::move(resident_.front());
      resident_.pop_front();
      if (block->number > launch_.fault_block_seen.load())
        continue;  // an earlier block has faulted
      bool polled = false;
      const Progress progress = run_block(*block, kBlockQuantum, polled);
      wants_more = progress != Progress::paused || polled;
      if (progress == Progress::paused) {
        if (polled)
          resident_.push_back(std::move(block));
        else
          resident_.push_front(std::move(block));
      } else {
        retire(std::move(block));
      }
    }
  }

 private:
  std::size_t limit() const {
    return launch_.cooperative ? std::size_t(launch_.blocks) : kResident;
  }

  void claim() {
    const u64 number = next_.fetch_add(1);
    if (number >= launch_.blocks || number > launch_.fault_block_seen.load()) return;
    std::unique_ptr<Block> block;
    if (spare_.empty()) {
      block = std::make_unique<Block>();
    } else {
      block = std::move(spare_.back());
      spare_.pop_back();
    }
    start_block(*block, launch_, number);
    resident_.push_front(std::move(block));
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
  std::deque<std::unique_ptr<Block>> resident_;
  std::vector<std::unique_ptr<Block>> spare_;
};

}  // namespace

bool run_launch(LaunchState& launch, unsigned threads) {
  std::atomic<u64> next{0};
  const u64 useful = std::min<u64>(std::max(threads, 1u), launch.blocks);
  std::vector<std::thread> others;
  for (u64 i = 1; i < useful; ++i) others.emplace_back([&] { Worker(launch, next).work(); });
  Worker(launch, next).work();
  for (std::thread& t : others) t.join();
  std::sort(launch.printed.begin(), launch.printed.end());
  return launch.fault_block == ~u64{0};
}

}  // namespace attest::emulator
