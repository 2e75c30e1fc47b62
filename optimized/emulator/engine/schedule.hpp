// Which of the legal orders a launch takes: a stream of decisions that depends on the seed, the
// number of the launch and the block alone, never on the host. Seed 0 decides nothing: whoever asks
// then keeps the order that is strictest for progress. Knows no warp and no block.
#pragma once
#include "optimized/emulator/engine/machine.hpp"

namespace attest::emulator {

class Schedule {
 public:
  Schedule() = default;
  Schedule(u64 seed, u64 launch, u64 block)
      : permutes_(seed != 0), state_(mix(mix(mix(seed + kStep) + launch) + block)) {}

  /// False for seed 0: keep to the default order and draw nothing.
  bool permutes() const { return permutes_; }
  u64 draw() { return mix(state_ += kStep); }
  /// 0 <= result < count. The bias is below count / 2^32.
  u32 below(u32 count) { return u32(((draw() >> 32) * count) >> 32); }
  bool one_in(u32 count) { return below(count) == 0; }

 private:
  // SplitMix64: G. Steele, D. Lea and C. Flood, OOPSLA 2014, doi:10.1145/2660193.2660195.
  static constexpr u64 kStep = 0x9e3779b97f4a7c15;
  static u64 mix(u64 z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }

  bool permutes_ = false;
  u64 state_ = 0;
};

/// The block number under which decisions of a launch as a whole are drawn.
inline constexpr u64 kWholeLaunch = ~u64{0};

}  // namespace attest::emulator
