// How undefined values come into registers one lane at a time: by loads and shuffles.
#include <fmt/format.h>

#include <algorithm>

#include "optimized/emulator/engine/checks/state.hpp"

namespace attest::emulator {

using ptx::Operand;
using ptx::Register;

void load_undefined(const Op& op, Warp& w, const u32* bytes, u32 origin) {
  Undefined& u = w.block->checks->undefined;
  const ptx::Instruction& i = w.frame->code->function->body[op.origin];
  ptx::Type type = ptx::Type::b32;
  for (const std::string& m : i.modifiers) {
    if (const auto named = ptx::type_named(m)) type = *named;
  }
  const u32 width = u32(ptx::size_of(type));
  const bool sign = type == ptx::Type::s8 || type == ptx::Type::s16 || type == ptx::Type::s32;
  u32 first = 0;
  for (const Operand& part : parts_of(i.operands[0])) {
    u64 bits[kLanes];
    for (u32 l = 0; l < kLanes; ++l) {
      bits[l] = 0;
      for (u32 byte = 0; byte < width; ++byte)
        bits[l] |= u64((bytes[l] >> (first + byte)) & 1 ? 0xff : 0) << (8 * byte);
      if (sign && (bits[l] >> (8 * width - 1)) & 1) bits[l] |= ~u64{0} << (8 * width - 1);
    }
    put_undefined(u, w, part.reg, w.mask, bits, origin);
    first += width;
  }
  show_tracking(u, w);
}

void shuffle_undefined(const Op& op, Warp& w, const u32* source, u32 absent) {
  Undefined& u = w.block->checks->undefined;
  const ptx::Instruction& i = w.frame->code->function->body[op.origin];
  const Register to = i.operands[0].reg, from = i.operands[1].reg;
  if (absent != 0 && !is_news(*w.block, op)) absent = 0;
  Undefined::Values& values = undefined_values(u, w);
  const Undefined::Shadow* const taken =
      from < values.by_register.size() ? values.by_register[from].get() : nullptr;
  u64 bits[kLanes];
  for (u32 l = 0; l < kLanes; ++l)
    bits[l] = (absent >> l) & 1 ? ~u64{0} : taken ? taken->bits[source[l]] : 0;
  u32 origin = taken ? taken->origin : 0;
  if (absent != 0) {
    const u32 lane = u32(__builtin_ctz(absent)), of = source[lane];
    const bool left = (w.existing & ~w.live) >> of & 1;
    origin =
        origin_of(op, w, lane,
                  fmt::format("takes the value of lane {}, which {}: what it gets is undefined", of,
                              left                 ? "has exited"
                              : (w.mask >> of & 1) ? "its member mask leaves out"
                                                   : "does not take part"));
  }
  put_undefined(u, w, to, w.mask, bits, origin);
  show_tracking(u, w);
}

}  // namespace attest::emulator
