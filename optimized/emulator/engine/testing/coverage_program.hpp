// A kernel with a trap behind a nest of comparisons, for whoever shows that coverage leads there.
// Each comparison is a block of its own; none of the five can be guessed from the others.
#pragma once
#include <string_view>

namespace attest::emulator {

inline constexpr std::string_view kNestedTrap = R"(
.version 8.0
.target sm_80
.address_size 64
.visible .entry nested(.param .u64 bytes) {
  .reg .b64 %d<3>; .reg .b32 %r<9>; .reg .pred %p<9>;
  ld.param.u64 %d1, [bytes];
  ld.global.u8 %r1, [%d1];
  ld.global.u8 %r2, [%d1+1];
  ld.global.u8 %r3, [%d1+2];
  ld.global.u8 %r4, [%d1+3];
  ld.global.u8 %r5, [%d1+4];
  setp.ne.u32 %p1, %r1, 71;
@%p1 bra DONE;
  xor.b32 %r6, %r2, 90;
  setp.ne.u32 %p2, %r6, 33;
@%p2 bra DONE;
  add.s32 %r7, %r3, %r1;
  setp.ne.u32 %p3, %r7, 200;
@%p3 bra DONE;
  mul.lo.u32 %r8, %r4, 3;
  setp.ne.u32 %p4, %r8, 357;
@%p4 bra DONE;
  setp.ne.u32 %p5, %r5, %r2;
@%p5 bra DONE;
  trap;
DONE:
  ret;
}
)";
// What reaches the trap: 71, 33 ^ 90, 200 - 71, 357 / 3, and the second byte again.
inline constexpr unsigned char kNestedKey[] = {71, 123, 129, 119, 123};

}  // namespace attest::emulator
