// The books of undefined values, and how they come into registers one lane at a time: by loads and
// shuffles.
#include <fmt/format.h>

#include <algorithm>

#include "optimized/emulator/engine/checks/state.hpp"

namespace attest::emulator {

using ptx::Operand;
using ptx::Register;

u64 bits_of_register(const Warp& w, Register r) {
  const ptx::Type type = w.frame->code->function->registers[r].type;
  const u32 width = type == ptx::Type::pred ? 1 : u32(ptx::size_of(type)) * 8;
  return width >= 64 ? ~u64{0} : (u64{1} << width) - 1;
}

void drop_undefined(Undefined::Values& values, Register r) {
  if (r >= values.by_register.size() || values.by_register[r] == nullptr) return;
  values.by_register[r].reset();
  --values.count;
}

std::vector<Operand> parts_of(const Operand& o) {
  return o.kind == Operand::Kind::vector ? o.elements : std::vector<Operand>{o};
}

Undefined::Values& undefined_values(Undefined& u, const Warp& w) {
  Undefined::Values& values = u.frames[w.frame];
  const std::size_t count = w.frame->code->function->registers.size();
  if (values.by_register.size() != count) {
    values = {};
    values.by_register.resize(count);
  }
  values.warp = w.index;
  return values;
}

void show_tracking(Undefined& u, Warp& w) {
  u32 count = 0;
  for (const auto& [frame, values] : u.frames) {
    if (values.warp == w.index) count += values.count + u32(values.doubts.size());
  }
  w.watching->tracks = count != 0;
  if (count == 0) w.watching->hollow = 0;
}

void put_undefined(Undefined& u, const Warp& w, Register r, u32 on, const u64* bits, u32 origin) {
  Undefined::Values& values = undefined_values(u, w);
  if (r >= values.by_register.size()) return;
  const u64 width = bits_of_register(w, r);
  u32 lanes = 0;
  for (u32 left = on; left; left &= left - 1) {
    const u32 l = u32(__builtin_ctz(left));
    lanes |= u32((bits[l] & width) != 0) << l;
  }
  std::unique_ptr<Undefined::Shadow>& shadow = values.by_register[r];
  if (shadow == nullptr) {
    if (lanes == 0) return;
    shadow = std::make_unique<Undefined::Shadow>();
    ++values.count;
  }
  for (u32 left = on; left; left &= left - 1) {
    const u32 l = u32(__builtin_ctz(left));
    shadow->bits[l] = bits[l] & width;
  }
  shadow->lanes = (shadow->lanes & ~on) | lanes;
  if (lanes != 0) shadow->origin = origin;
  if (shadow->lanes == 0) drop_undefined(values, r);
}

void forget_undefined(Block& block) {
  Undefined& u = block.checks->undefined;
  u.frames.clear();
  u.origins.clear();
  for (Watching& v : block.checks->watching) v.tracks = v.hollow = 0;
}

namespace {

u32 origin_index(const Undefined& u, const Op& op) {
  const auto it = std::find_if(u.origins.begin(), u.origins.end(),
                               [&](const Undefined::Origin& o) { return o.op == &op; });
  return u32(it - u.origins.begin());
}

}  // namespace

bool is_news(Block& block, const Op& op) {
  const Undefined& u = block.checks->undefined;
  const u32 index = origin_index(u, op);
  return index == u.origins.size() || !u.origins[index].told;
}

u32 origin_of(const Op& op, Warp& w, u32 lane, std::string what) {
  Undefined& u = w.block->checks->undefined;
  const u32 index = origin_index(u, op);
  if (index == u.origins.size()) u.origins.push_back({&op, lane, std::move(what)});
  return index;
}

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
