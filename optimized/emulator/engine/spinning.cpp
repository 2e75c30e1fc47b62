// Blocks that poll memory which nobody is left to change: a barrier over more blocks than are
// resident, a flag that nobody sets. Proven by the state of registers coming back while memory
// stays as it is; what cannot be proven so runs on, to the limit of instructions.
#include <fmt/format.h>

#include "optimized/emulator/engine/block.hpp"

namespace attest::emulator {
namespace {

// Each return to the same state shows one way round. So many leave no doubt that all warps and
// fragments had their turn in between: a seed passes one by with probability 3/4 at most, 1e-8.
constexpr u32 kReturnsInOrder = 8, kReturnsUnderSeed = 64;

class Digest {
 public:
  void add(u64 word) { state_ = (state_ ^ word) * 0x100000001b3 + (state_ >> 29); }  // after FNV-1
  u64 state() const { return state_; }

 private:
  u64 state_ = 0xcbf29ce484222325;
};

u64 state_of(const Block& block) {
  Digest digest;
  for (const auto& frame : block.frames) {
    const u64* words = reinterpret_cast<const u64*>(frame->storage);
    for (u64 i = 0; i < frame->storage_bytes / sizeof(u64); ++i) digest.add(words[i]);
  }
  const auto add_lanes = [&](const void* pc, const Frame* frame, u64 mask, Wait wait) {
    digest.add(reinterpret_cast<u64>(pc));
    digest.add(reinterpret_cast<u64>(frame));
    digest.add(mask << 8 | u64(wait));
  };
  for (const Warp& w : block.warps) {
    add_lanes(w.resume, w.frame, w.active, Wait::none);
    for (u32 i = 0; i < w.other_count; ++i)
      add_lanes(w.others[i].pc, w.others[i].frame, w.others[i].mask, w.others[i].wait);
  }
  for (const Barrier& b : block.barriers) digest.add(b.arrived);
  digest.add(block.async.epoch);
  digest.add(block.printed.size());
  return digest.state();
}

}  // namespace

bool spins_for_ever(Block& block, u64 epoch) {
  Spin& spin = block.spin;
  const u64 state = state_of(block);
  if (spin.epoch != epoch) spin = {state, 0, epoch, 0, false};
  ++spin.turns;
  if (spin.turns > 1 && spin.state == state) ++spin.returns;
  // Brent: what is compared with moves on at powers of two, past what came before the cycle.
  if ((spin.turns & (spin.turns - 1)) == 0 && spin.returns == 0) spin.state = state;
  return spin.returns >= (block.schedule.permutes() ? kReturnsUnderSeed : kReturnsInOrder);
}

void report_spinning(Block& block, u64 resident, u64 unstarted) {
  for (Warp& w : block.warps) {
    const Op* pc = w.active != 0 ? w.resume : nullptr;
    u32 mask = w.active;
    for (u32 i = 0; i < w.other_count && pc == nullptr; ++i) {
      if (w.others[i].wait == Wait::none) pc = w.others[i].pc, mask = w.others[i].mask;
    }
    if (pc == nullptr) continue;
    std::string what = fmt::format(
        "waits for ever: the {} blocks that run all read the same memory again and again, and "
        "nobody is left to change it",
        resident);
    if (unstarted != 0) {
      what += fmt::format(
          "; {} more start only when one of these ends, so that a barrier over the grid needs "
          "fewer "
          "blocks, or a cooperative launch, which checks it",
          unstarted);
    }
    fault(w, *pc, u32(__builtin_ctz(mask)), "deadlock", what);
    return;
  }
}

}  // namespace attest::emulator
