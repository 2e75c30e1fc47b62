// What the tests of matrix instructions share: a kernel around one mma that a GPU could run as
// well, and matrices laid out in its registers by the formulas of the PTX ISA. Test code only.
#pragma once
#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <vector>

#include "optimized/emulator/engine/testing/test_program.hpp"

namespace attest::emulator {

/// One spelling of mma, and what it takes.
struct MmaCase {
  std::string shape;  // "m16n8k16"
  std::string types;  // "f32.bf16.bf16.f32"
  unsigned m, n, k;
  unsigned bits_ab, bits_c, bits_d;
  std::string after = {};
};

/// In registers of 32 bits, or 64 when the elements are that wide.
inline unsigned registers_of(unsigned elements, unsigned bits) {
  return elements * std::min(bits, 32u) / 32 / 32;
}

/// Block b loads A, B and C from in + b * words, register after register, executes the instruction
/// and stores D. Registers are 32-bit, a word per lane.
struct MmaProgram {
  explicit MmaProgram(const MmaCase& of)
      : a(registers_of(of.m * of.k, of.bits_ab)),
        b(registers_of(of.k * of.n, of.bits_ab)),
        c(registers_of(of.m * of.n, of.bits_c)),
        d(registers_of(of.m * of.n, of.bits_d)) {
    const unsigned word = of.bits_ab == 64 ? 8 : 4;
    std::string loads, stores;
    const auto names = [](char letter, unsigned count) {
      std::string list;
      for (unsigned i = 0; i < count; ++i) list += fmt::format("{}%{}{}", i ? "," : "", letter, i);
      return "{" + list + "}";
    };
    unsigned at = 0;
    for (const auto& [letter, count] : {std::pair{'a', a}, {'b', b}, {'c', c}}) {
      for (unsigned i = 0; i < count; ++i, ++at)
        loads +=
            fmt::format("ld.global.b{} %{}{}, [%in+{}];\n", 8 * word, letter, i, at * 32 * word);
    }
    for (unsigned i = 0; i < d; ++i)
      stores += fmt::format("st.global.b{} [%out+{}], %d{};\n", 8 * word, i * 32 * word, i);
    text = fmt::format(
        ".version 8.7\n.target sm_120\n.address_size 64\n.visible .entry k(.param .u64 from, "
        ".param "
        ".u64 to)\n{{\n.reg .b64 %in, %out, %at;\n.reg .b32 %t, %block;\n"
        ".reg .b{} %a<9>, %b<9>, %c<9>, %d<9>;\n"
        "ld.param.u64 %in, [from];\nld.param.u64 %out, [to];\nmov.u32 %t, %tid.x;\n"
        "mov.u32 %block, %ctaid.x;\n"
        "mul.wide.u32 %at, %t, {};\nadd.u64 %in, %in, %at;\nadd.u64 %out, %out, %at;\n"
        "mul.wide.u32 %at, %block, {};\nadd.u64 %in, %in, %at;\n"
        "mul.wide.u32 %at, %block, {};\nadd.u64 %out, %out, %at;\n"
        "{}mma.sync.aligned.{}.row.col.{}{} {}, {}, {}, {};\n{}ret;\n}}\n",
        8 * word, word, (a + b + c) * 32 * word, d * 32 * word, loads, of.shape, of.types, of.after,
        names('d', d), names('a', a), names('b', b), names('c', c), stores);
  }
  unsigned a, b, c, d;  // registers
  std::string text;
};

/// Where the PTX ISA puts element i of a lane's fragment, in order of registers.
struct Spot {
  unsigned row, column;
};
/// A of m16 (or m8): `per` elements to a register.
inline Spot spot_a(unsigned lane, unsigned i, unsigned per, unsigned m) {
  const unsigned group = lane >> 2, in_group = lane % 4, halves = m / 8;
  return {group + 8 * (i / per % halves),
          in_group * per + i % per + 4 * per * (i / (per * halves))};
}
inline Spot spot_b(unsigned lane, unsigned i, unsigned per) {
  return {lane % 4 * per + i % per + 4 * per * (i / per), lane >> 2};
}
inline Spot spot_c(unsigned lane, unsigned i) {
  return {(lane >> 2) + 8 * (i / 2), lane % 4 * 2 + (i & 1)};
}

/// Writes element i of a lane, `bits` wide, into its registers of 32 lanes each.
inline void put_element(std::uint32_t* registers, unsigned lane, unsigned i, unsigned bits,
                        std::uint64_t value) {
  const unsigned at = i * bits;
  std::uint32_t& word = registers[at / 32 * 32 + lane];
  const std::uint32_t mask = bits >= 32 ? ~0u : (1u << bits) - 1;
  word = (word & ~(mask << at % 32)) | (std::uint32_t(value) & mask) << at % 32;
}
inline std::uint32_t get_element(const std::uint32_t* registers, unsigned lane, unsigned i,
                                 unsigned bits) {
  const unsigned at = i * bits;
  const std::uint32_t mask = bits >= 32 ? ~0u : (1u << bits) - 1;
  return (registers[at / 32 * 32 + lane] >> at % 32) & mask;
}

inline void choose_model(const Way& way, const std::string& numerics) {
  std::string problem;
  DeviceOptions options;
  options.numerics = *parse_numerics(numerics, problem);
  choose(way, options);
}

/// 64 bits from a counter (SplitMix64, Steele et al. 2014).
struct Random {
  std::uint64_t state;
  std::uint64_t operator()() {
    std::uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
  unsigned below(unsigned n) { return unsigned((*this)() % n); }
};

}  // namespace attest::emulator
