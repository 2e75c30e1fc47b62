// mma, wmma, ldmatrix, stmatrix and movmatrix: which shapes and types exist, since which
// architecture, and where their registers are.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <optional>

#include "optimized/emulator/engine/decode.hpp"
#include "optimized/emulator/engine/tensor/matrix.hpp"

namespace attest::emulator {
namespace {

using ptx::Operand;
using ptx::Type;

struct Extent {
  u32 m = 0, n = 0, k = 0;
  bool operator==(const Extent&) const = default;
};

/// "m16n8k16".
std::optional<Extent> extent_named(std::string_view text) {
  Extent e;
  const char* at = text.data();
  const char* const end = at + text.size();
  for (const auto& [letter, value] : {std::pair{'m', &e.m}, {'n', &e.n}, {'k', &e.k}}) {
    if (at == end || *at != letter) return std::nullopt;
    const auto [stop, error] = std::from_chars(at + 1, end, *value);
    if (error != std::errc()) return std::nullopt;
    at = stop;
  }
  return at == end ? std::optional(e) : std::nullopt;
}

struct FormatName {
  std::string_view name;
  Format format;
  u32 bits;
};
constexpr std::array kFormats{
    FormatName{"f16", Format::f16, 16},   FormatName{"bf16", Format::bf16, 16},
    FormatName{"tf32", Format::tf32, 32}, FormatName{"e4m3", Format::e4m3, 8},
    FormatName{"e5m2", Format::e5m2, 8},  FormatName{"s8", Format::int8, 8},
    FormatName{"u8", Format::uint8, 8},   FormatName{"s4", Format::int4, 4},
    FormatName{"u4", Format::uint4, 4},   FormatName{"b1", Format::bits, 1},
    FormatName{"f64", Format::f64, 64},
};
const FormatName* format_named(std::string_view name) {
  const auto it = std::find_if(kFormats.begin(), kFormats.end(),
                               [&](const FormatName& f) { return f.name == name; });
  return it == kFormats.end() ? nullptr : &*it;
}
std::optional<Accumulator> accumulator_named(std::string_view name) {
  if (name == "f32") return Accumulator::f32;
  if (name == "f16") return Accumulator::f16;
  if (name == "s32") return Accumulator::int32;
  if (name == "f64") return Accumulator::f64;
  return std::nullopt;
}

/// Which shapes exist, for which operands, since which architecture (PTX ISA, sections on mma and
/// wmma). Operands are named by the one that stands for its kind.
struct Existing {
  Extent extent;
  Format kind;
  u32 since;
};
constexpr Existing kMma[] = {
    {{8, 8, 4}, Format::f16, 70},     {{16, 8, 8}, Format::f16, 75},
    {{16, 8, 16}, Format::f16, 80},   {{16, 8, 8}, Format::bf16, 80},
    {{16, 8, 16}, Format::bf16, 80},  {{16, 8, 4}, Format::tf32, 80},
    {{16, 8, 8}, Format::tf32, 80},   {{8, 8, 4}, Format::f64, 80},
    {{16, 8, 4}, Format::f64, 90},    {{16, 8, 8}, Format::f64, 90},
    {{16, 8, 16}, Format::f64, 90},   {{8, 8, 16}, Format::int8, 75},
    {{16, 8, 16}, Format::int8, 80},  {{16, 8, 32}, Format::int8, 80},
    {{8, 8, 32}, Format::int4, 75},   {{16, 8, 32}, Format::int4, 80},
    {{16, 8, 64}, Format::int4, 80},  {{8, 8, 128}, Format::bits, 75},
    {{16, 8, 128}, Format::bits, 80}, {{16, 8, 256}, Format::bits, 80},
    {{16, 8, 16}, Format::e4m3, 89},  {{16, 8, 32}, Format::e4m3, 89},
};
constexpr Existing kWmma[] = {
    {{16, 16, 16}, Format::f16, 70},  {{32, 8, 16}, Format::f16, 70},
    {{8, 32, 16}, Format::f16, 70},   {{16, 16, 16}, Format::bf16, 80},
    {{32, 8, 16}, Format::bf16, 80},  {{8, 32, 16}, Format::bf16, 80},
    {{16, 16, 16}, Format::int8, 72}, {{32, 8, 16}, Format::int8, 72},
    {{8, 32, 16}, Format::int8, 72},  {{16, 16, 8}, Format::tf32, 80},
    {{8, 8, 4}, Format::f64, 80},     {{8, 8, 32}, Format::int4, 75},
    {{8, 8, 128}, Format::bits, 75},
};

Format kind_of(Format f) {
  if (f == Format::uint8) return Format::int8;
  if (f == Format::uint4) return Format::int4;
  return f == Format::e5m2 ? Format::e4m3 : f;
}
bool is_integer(Format f) {
  return f == Format::int8 || f == Format::uint8 || f == Format::int4 || f == Format::uint4 ||
         f == Format::bits;
}
u32 bits_of(Format f) {
  return std::find_if(kFormats.begin(), kFormats.end(),
                      [&](const FormatName& n) { return n.format == f; })
      ->bits;
}

template <std::size_t kCount>
u32 since_of(const Existing (&all)[kCount], Extent extent, Format format) {
  for (const Existing& e : all) {
    if (e.extent == extent && e.kind == kind_of(format)) return e.since;
  }
  throw Unsupported{"PTX has no such shape for these types"};
}

/// Shape and types as written, in order.
struct Written {
  Extent extent;
  std::vector<std::string> types;
  std::vector<std::string> layouts;  // row, col
};
Written read_spelling(const ptx::Instruction& i) {
  Written w;
  for (const std::string& m : i.modifiers) {
    if (const auto extent = extent_named(m)) w.extent = *extent;
    if (m == "row" || m == "col") w.layouts.push_back(m);
    if (format_named(m) || accumulator_named(m)) w.types.push_back(m);
  }
  return w;
}

void require_aligned(const Spelling& s) {
  if (!s.has(Modifier::sync) || !s.has(Modifier::aligned))
    throw Unsupported{".sync.aligned is mandatory"};
}

/// Accumulators that go with the operands.
void check_types(const MmaShape& s, bool mixed) {
  const bool integers = is_integer(s.a);
  const auto is = [&](Accumulator a) { return s.c == a && s.d == a; };
  const bool halves = kind_of(s.a) == Format::f16 || kind_of(s.a) == Format::e4m3;
  const bool floats = (s.c == Accumulator::f32 || s.c == Accumulator::f16) &&
                      (s.d == Accumulator::f32 || s.d == Accumulator::f16);
  const bool good = integers             ? is(Accumulator::int32)
                    : s.a == Format::f64 ? is(Accumulator::f64)
                    : halves             ? floats && (mixed || s.c == s.d)
                                         : is(Accumulator::f32);
  if (!good || kind_of(s.a) != kind_of(s.b))
    throw Unsupported{"PTX has no such combination of types"};
}

u32 register_bits(Format f) {
  return f == Format::f64 ? 64 : 32;
}

/// Fills in everything that follows from extent and types.
void finish_shape(MmaShape& s, Extent e) {
  s.halves = e.m % 16 == 0 ? 2 : 1;
  s.row_tiles = e.m / (8 * s.halves), s.column_tiles = e.n / 8;
  s.depth = e.k;
  s.per_word = register_bits(s.a) / bits_of(s.a);
  s.words = s.depth / (4 * s.per_word);
  s.a_count = s.row_tiles * words_of_a(s), s.b_count = s.column_tiles * s.words;
  s.c_count = s.row_tiles * s.column_tiles * words_of(s, s.c);
  s.d_count = s.row_tiles * s.column_tiles * words_of(s, s.d);
}

u32 rounding_choice(const Spelling& s) {
  return u32(s.rounding());
}

}  // namespace

/// The registers of an operand, as sources. PTX writes one register with or without braces.
std::vector<u32> Decoder::fragment(const Operand& o, u32 count, Type type, bool results) {
  const std::vector<Operand> one{o};
  const std::vector<Operand>& parts = o.kind == Operand::Kind::vector ? o.elements : one;
  if (parts.size() != count)
    throw Unsupported{fmt::format("{} registers where it takes {}", parts.size(), count)};
  std::vector<u32> slots;
  for (const Operand& part : parts)
    slots.push_back(results ? destination(part, type) : source(part, type));
  return slots;
}

void Decoder::finish_fragment(const Operand& o, Type type, const std::vector<u32>& slots) {
  const std::vector<Operand> one{o};
  const std::vector<Operand>& parts = o.kind == Operand::Kind::vector ? o.elements : one;
  for (std::size_t n = 0; n < parts.size(); ++n) finish_destination(parts[n], type, slots[n]);
}

template <class Plan>
const u32* Decoder::plan_and_slots(const Plan& plan, const std::vector<u32>& slots) {
  std::vector<u32> words(sizeof(Plan) / sizeof(u32));
  std::memcpy(words.data(), &plan, sizeof(Plan));
  words.insert(words.end(), slots.begin(), slots.end());
  return list(std::move(words));
}

/// Emits the operation once the shape is known: D, A, B, C.
void Decoder::emit_mma(const ptx::Instruction& i, const Spelling& s, const MmaShape& shape) {
  const Type type = shape.a == Format::f64 ? Type::b64 : Type::b32;
  std::vector<u32> slots;
  const auto add = [&](const std::vector<u32>& more) {
    slots.insert(slots.end(), more.begin(), more.end());
  };
  if (i.operands.size() != 4) throw Unsupported{"it takes D, A, B and C"};
  skip_unless_guarded(i);
  const std::vector<u32> d = fragment(i.operands[0], shape.d_count, type, true);
  add(d);
  add(fragment(i.operands[1], shape.a_count, type, false));
  add(fragment(i.operands[2], shape.b_count, type, false));
  add(fragment(i.operands[3], shape.c_count, type, false));
  const u32* words = plan_and_slots(shape, slots);
  Op& op = emit(select(Opcode::mma, s));
  op.list = words;
  op.flags |= kAligned;
  finish_fragment(i.operands[0], type, d);
}

void Decoder::matrix(const ptx::Instruction& i, const Spelling& s) {
  require_aligned(s);
  if (s.opcode == Opcode::mma) return mma(i, s);
  if (s.opcode == Opcode::wmma) return wmma(i, s);
  return s.opcode == Opcode::movmatrix ? movmatrix(i, s) : matrix_rows(i, s);
}

void Decoder::mma(const ptx::Instruction& i, const Spelling& s) {
  const Written w = read_spelling(i);
  if (w.types.size() != 4) throw Unsupported{"it names the types of D, A, B and C"};
  const FormatName* a = format_named(w.types[1]);
  const FormatName* b = format_named(w.types[2]);
  const auto d = accumulator_named(w.types[0]), c = accumulator_named(w.types[3]);
  if (!a || !b || !c || !d) throw Unsupported{"PTX has no such combination of types"};
  MmaShape shape{};
  shape.a = a->format, shape.b = b->format, shape.c = *c, shape.d = *d;
  shape.since = since_of(kMma, w.extent, shape.a);
  const bool volta = w.extent == Extent{8, 8, 4} && shape.a == Format::f16;
  check_types(shape, volta);
  if (w.layouts.size() != 2 || (!volta && (w.layouts[0] != "row" || w.layouts[1] != "col")))
    throw Unsupported{"A goes by .row and B by .col"};
  finish_shape(shape, w.extent);
  if (volta) {
    shape.a_count = shape.b_count = 2;
    shape.c_count = shape.c == Accumulator::f16 ? 4 : 8;
    shape.d_count = shape.d == Accumulator::f16 ? 4 : 8;
    shape.choice = (w.layouts[0] == "col" ? 1 : 0) | (w.layouts[1] == "col" ? 2 : 0);
  } else if (shape.a == Format::bits) {
    if (!s.has(Modifier::popc) || s.has(Modifier::and_) == s.has(Modifier::xor_))
      throw Unsupported{"bits are combined by .xor.popc or .and.popc"};
    shape.choice = s.has(Modifier::and_) ? 1 : 0;
    if (shape.choice == 1) shape.since = std::max(shape.since, 80u);
  } else if (is_integer(shape.a)) {
    shape.choice = s.has(Modifier::satfinite) ? 1 : 0;
  } else if (shape.a == Format::f64) {
    shape.choice = rounding_choice(s);
  }
  emit_mma(i, s, shape);
}

void Decoder::wmma(const ptx::Instruction& i, const Spelling& s) {
  if (!s.has(Modifier::mma)) return wmma_memory(i, s);
  Written w = read_spelling(i);
  if (w.types.size() == 2) w.types = {w.types[0], "f16", "f16", w.types[1]};
  if (w.types.size() != 4) throw Unsupported{"it names the types of D, A, B and C"};
  const FormatName* a = format_named(w.types[1]);
  const FormatName* b = format_named(w.types[2]);
  const auto d = accumulator_named(w.types[0]), c = accumulator_named(w.types[3]);
  if (!a || !b || !c || !d) throw Unsupported{"PTX has no such combination of types"};
  MmaShape shape{};
  shape.a = a->format, shape.b = b->format, shape.c = *c, shape.d = *d;
  shape.since = since_of(kWmma, w.extent, shape.a);
  check_types(shape, true);
  // Fragments have the same layout whatever way the matrix was stored.
  finish_shape(shape, w.extent);
  if (shape.a == Format::f16) shape.a_count = shape.b_count = 8;
  if (is_integer(shape.a)) shape.choice = s.has(Modifier::satfinite) || s.has(Modifier::and_);
  if (shape.a == Format::bits && shape.choice) shape.since = std::max(shape.since, 80u);
  if (shape.a == Format::f64) shape.choice = rounding_choice(s);
  emit_mma(i, s, shape);
}

/// wmma.load and wmma.store.
void Decoder::wmma_memory(const ptx::Instruction& i, Spelling s) {
  const Written w = read_spelling(i);
  const bool store = s.has(Modifier::store);
  if (w.types.size() != 1 || w.layouts.size() != 1)
    throw Unsupported{"it names one type and one layout"};
  const std::string& type = w.types[0];
  const bool is_c = store || s.has(Modifier::matrix_c);
  // The operands that go with accumulators do not matter here, but for the depth's share of bits.
  MmaShape shape{};
  const FormatName* named = format_named(type);
  if (!is_c && !named) throw Unsupported{"PTX has no such combination of types"};
  const bool tf32 = w.extent == Extent{16, 16, 8};
  shape.a = shape.b = !is_c                           ? named->format
                      : type == "f64"                 ? Format::f64
                      : w.extent == Extent{8, 8, 32}  ? Format::int4
                      : w.extent == Extent{8, 8, 128} ? Format::bits
                      : tf32                          ? Format::tf32
                      : type == "s32"                 ? Format::int8
                                                      : Format::f16;
  shape.since = since_of(kWmma, w.extent, shape.a);
  const auto accumulator = accumulator_named(type);
  if (is_c && !accumulator) throw Unsupported{"PTX has no such combination of types"};
  shape.c = shape.d = is_c ? *accumulator : Accumulator::f32;
  if (is_c) check_types(shape, true);
  finish_shape(shape, w.extent);

  MatrixPlan plan{};
  const bool is_a = !is_c && s.has(Modifier::matrix_a);
  plan.part = is_c ? Part::c : is_a ? Part::a : Part::b;
  plan.since = shape.since;
  plan.by_rows = w.layouts[0] == "row";
  plan.halves = shape.halves, plan.column_tiles = shape.column_tiles;
  plan.register_bits = register_bits(shape.a);
  const u32 bits = bits_of(shape.a);
  plan.element_bits = is_c ? (shape.c == Accumulator::f16 ? 16 : plan.register_bits) : bits;
  plan.own_registers = is_c ? shape.c_count : is_a ? shape.a_count : shape.b_count;
  plan.tile_registers = is_c ? words_of(shape, shape.c) : is_a ? words_of_a(shape) : shape.words;
  plan.registers = !is_c && shape.a == Format::f16 ? 8 : plan.own_registers;
  const u32 rows = is_c || is_a ? w.extent.m : w.extent.k;
  const u32 columns = is_c || !is_a ? w.extent.n : w.extent.k;
  plan.lines = plan.by_rows ? rows : columns;
  plan.line_elements = plan.by_rows ? columns : rows;
  plan.stride_bits = plan.element_bits;
  plan.default_stride = plan.line_elements;
  if (bits < 8 && !is_c) {
    if (plan.by_rows != u32(is_a)) throw Unsupported{"A goes by .row and B by .col"};
    plan.element_bits = 32;
    plan.line_elements = plan.line_elements * bits / 32;
  }
  plan.fragment_bytes = plan.registers * plan.register_bits / 8;
  emit_matrix(i, s, plan, store);
}

void Decoder::emit_matrix(const ptx::Instruction& i, Spelling s, MatrixPlan plan, bool store) {
  const Operand& registers = i.operands[store ? 1 : 0];
  const Operand& where = i.operands[store ? 0 : 1];
  const Type type = plan.register_bits == 64 ? Type::b64 : Type::b32;
  skip_unless_guarded(i);
  const Address at = address(where, space_of(s, where));
  const u32 stride = i.operands.size() > 2 ? source(i.operands[2], Type::b32) : kNone;
  if (at.space != Space::shared && at.space != Space::global && at.space != Space::generic)
    throw Unsupported{"matrices live in global or shared memory"};
  plan.space = u32(at.space);
  const std::vector<u32> slots = fragment(registers, plan.registers, type, !store);
  const u32* words = plan_and_slots(plan, slots);
  s.vector = at.wide ? 2 : 1;
  Op& op = emit(select(Opcode::wmma, s));
  op.a = at.base, op.b = stride, op.immediate = at.displacement;
  op.list = words;
  op.cache = program_.interval_count++;
  op.flags |= kAligned;
  if (!store) finish_fragment(registers, type, slots);
}

/// ldmatrix and stmatrix. Generic addresses must lie in shared memory, so they become its offsets.
void Decoder::matrix_rows(const ptx::Instruction& i, Spelling s) {
  const bool store = s.opcode == Opcode::stmatrix;
  const u32 count = s.has(Modifier::x4) ? 4 : s.has(Modifier::x2) ? 2 : s.has(Modifier::x1) ? 1 : 0;
  if (count == 0) throw Unsupported{"it moves .x1, .x2 or .x4 matrices"};
  const Operand& registers = i.operands[store ? 1 : 0];
  const Operand& where = i.operands[store ? 0 : 1];
  skip_unless_guarded(i);
  Address at = address(where, space_of(s, where));
  if (at.space == Space::generic)
    at.displacement -= s64(kSharedWindow);
  else if (at.space != Space::shared)
    throw Unsupported{"it works on shared memory"};
  const std::vector<u32> slots = fragment(registers, count, Type::b32, !store);
  const u32* words = list(slots);
  s.vector = at.wide ? 2 : 1;
  Op& op = emit(select(s.opcode, s));
  op.a = at.base, op.immediate = at.displacement;
  op.count = u8(count);
  op.list = words;
  op.cache = program_.interval_count++;
  op.flags |= kAligned;
  if (!store) finish_fragment(registers, Type::b32, slots);
}

void Decoder::movmatrix(const ptx::Instruction& i, const Spelling& s) {
  skip_unless_guarded(i);
  const u32 a = source(i.operands[1], Type::b32), d = destination(i.operands[0], Type::b32);
  Op& op = emit(select(s.opcode, s));
  op.d = d, op.a = a;
  op.flags |= kAligned;
  finish_destination(i.operands[0], Type::b32, d);
}

}  // namespace attest::emulator
