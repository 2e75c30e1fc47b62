// mma of floats against a statement of the tensor cores in doubles, written apart from the
// engine's: random operands of every kind, for every architecture that has the instruction; and
// cases worked out by hand.
#include <gtest/gtest.h>

#include <cstring>

#include "optimized/emulator/engine/testing/mma_program.hpp"
#include "optimized/emulator/engine/testing/mma_statement.hpp"

namespace attest::emulator {
namespace {

/// Patterns that make the sums hard: which kind is chosen anew for each matrix.
std::uint32_t draw(Random& random, unsigned mood, const Layout& f, bool is_c) {
  const int top = (1 << f.exponent_bits) - 1, middle = top / 2;
  const std::uint32_t sign = random.below(2) << (f.exponent_bits + f.fraction_bits);
  const std::uint32_t fraction = std::uint32_t(random()) & ((1u << f.fraction_bits) - 1);
  const auto made = [&](int stored, std::uint32_t low) {
    return sign | std::uint32_t(std::clamp(stored, 0, top)) << f.fraction_bits | low;
  };
  switch (mood) {
    case 0:  // any pattern
      return made(int(random.below(unsigned(top) + 1)), fraction);
    case 1:  // near one
      return made(middle - int(random.below(4)), fraction);
    case 2:  // far apart
      return made(middle - int(random.below(unsigned(middle))), fraction);
    case 3:  // subnormal and tiny
      return made(int(random.below(3)), fraction);
    case 4:  // powers of two: cancellations and ties
      return made(middle - int(random.below(is_c ? 26 : 13)), random.below(4) ? 0 : fraction & 1);
    case 5:  // one sign, largest significands: carries
      return made(middle, (1u << f.fraction_bits) - 1 - random.below(2)) & ~sign;
    case 6:  // mostly zeros
      return random.below(4) ? sign : made(middle - int(random.below(3)), fraction);
    case 9:  // products about the floor of the largest exponent, and hardly an accumulator
      if (is_c) return random.below(2) ? sign : made(int(random.below(3)), fraction);
      return made(middle - (f.exponent_bits == 8 ? 72 : 13) + int(random.below(6)), fraction);
    case 7:  // specials among ordinary values
      return random.below(16) ? made(middle - int(random.below(3)), fraction)
                              : made(top, random.below(2) ? 0 : fraction);
    default:  // large: overflow
      return made(top - 1 - int(random.below(3)), fraction);
  }
}

struct Kind {
  const char* shape;
  const char* types;
  unsigned m, k;
  Layout a, b, c;
  bool half;
  unsigned bits;
  std::vector<Constants> models;
};

const Constants kF32Model{"f32"};
/// The models that have 16-bit operands, cut to the depth of the instruction.
std::vector<Constants> sixteen(bool half, unsigned since) {
  std::vector<Constants> all;
  const auto add = [&](unsigned number, const char* name, int kept, unsigned together, int floor,
                       int half_floor) {
    if (number >= since) all.push_back({name, kept, together, half ? half_floor : floor});
  };
  add(70, "sm_70", 23, 4, -2000, -19);
  add(75, "sm_75", 24, 8, -132, -20);
  add(80, "sm_80", 24, 8, -132, -20);
  add(89, "sm_89", 24, 8, -132, -20);
  add(90, "sm_90", 25, 16, -133, -21);
  add(100, "sm_100", 25, 16, -133, -21);
  add(120, "sm_120", 25, 16, -133, -21);
  all.push_back(kF32Model);
  return all;
}
std::vector<Constants> tf32() {
  std::vector<Constants> all = sixteen(false, 80);
  for (Constants& c : all) c.together /= 2;
  return all;
}
std::vector<Constants> fp8(bool half) {
  return {{"sm_89", 13, 16, half ? -20 : -132, half ? 0 : 10},
          {"sm_90", 25, 16, half ? -21 : -133, 0, true},
          {"sm_100", 25, 16, half ? -21 : -133, 0, true},
          {"sm_120", 25, 32, half ? -21 : -133, 0},
          kF32Model};
}

const std::vector<Kind>& kinds() {
  static const std::vector<Kind> all{
      {"m16n8k16", "f32.bf16.bf16.f32", 16, 16, kBf16, kBf16, kF32, false, 16, sixteen(false, 80)},
      {"m16n8k16", "f32.f16.f16.f32", 16, 16, kF16, kF16, kF32, false, 16, sixteen(false, 80)},
      {"m16n8k16", "f16.f16.f16.f16", 16, 16, kF16, kF16, kF16, true, 16, sixteen(true, 80)},
      {"m16n8k8", "f32.tf32.tf32.f32", 16, 8, kTf32, kTf32, kF32, false, 32, tf32()},
      {"m16n8k4", "f32.tf32.tf32.f32", 16, 4, kTf32, kTf32, kF32, false, 32, tf32()},
      {"m16n8k8", "f32.bf16.bf16.f32", 16, 8, kBf16, kBf16, kF32, false, 16, sixteen(false, 80)},
      {"m16n8k8", "f32.f16.f16.f32", 16, 8, kF16, kF16, kF32, false, 16, sixteen(false, 75)},
      {"m16n8k8", "f16.f16.f16.f16", 16, 8, kF16, kF16, kF16, true, 16, sixteen(true, 75)},
      {"m16n8k32", "f32.e4m3.e4m3.f32", 16, 32, kE4m3, kE4m3, kF32, false, 8, fp8(false)},
      {"m16n8k32", "f32.e4m3.e5m2.f32", 16, 32, kE4m3, kE5m2, kF32, false, 8, fp8(false)},
      {"m16n8k32", "f16.e5m2.e5m2.f16", 16, 32, kE5m2, kE5m2, kF16, true, 8, fp8(true)},
      {"m16n8k16", "f32.e5m2.e4m3.f32", 16, 16, kE5m2, kE4m3, kF32, false, 8, fp8(false)},
  };
  return all;
}

/// Random instructions of one kind; the outputs that differ are counted, the first is told.
void compare(const Kind& kind, const Constants& how, const Way& way, unsigned count) {
  choose_model(way, how.model);
  const unsigned bits_c = kind.half ? 16 : 32;
  const MmaProgram program({kind.shape, kind.types, kind.m, 8, kind.k, kind.bits, bits_c, bits_c});
  const unsigned inputs = (program.a + program.b + program.c) * 32, outputs = program.d * 32;
  Buffer<std::uint32_t> in(std::size_t(inputs) * count), out(std::size_t(outputs) * count);
  Random random{std::hash<std::string>{}(how.model + kind.types + kind.shape)};
  const std::size_t m = kind.m, k = kind.k;
  std::vector<std::uint32_t> a(count * m * k), b(count * k * 8), c(count * m * 8);
  for (unsigned n = 0; n < count; ++n) {
    const unsigned mood = random.below(10);
    const unsigned mood_c = random.below(3) ? mood : random.below(10);
    for (std::size_t i = 0; i < m * k; ++i) a[n * m * k + i] = draw(random, mood, kind.a, false);
    for (std::size_t i = 0; i < k * 8; ++i) b[n * k * 8 + i] = draw(random, mood, kind.b, false);
    for (std::size_t i = 0; i < m * 8; ++i) c[n * m * 8 + i] = draw(random, mood_c, kind.c, true);
    std::uint32_t* at = in.begin() + std::size_t(n) * inputs;
    const unsigned per = 32 / kind.bits, dropped = kind.bits == 32 ? 13 : 0;
    for (unsigned lane = 0; lane < 32; ++lane) {
      for (unsigned i = 0; i < program.a * per; ++i) {
        const Spot s = spot_a(lane, i, per, kind.m);
        put_element(at, lane, i, kind.bits, a[n * m * k + s.row * k + s.column] << dropped);
      }
      for (unsigned i = 0; i < program.b * per; ++i) {
        const Spot s = spot_b(lane, i, per);
        put_element(at + program.a * 32, lane, i, kind.bits,
                    b[n * k * 8 + s.row * 8 + s.column] << dropped);
      }
      for (unsigned i = 0; i < program.c * 32 / bits_c; ++i) {
        const Spot s = spot_c(lane, i);
        put_element(at + (program.a + program.b) * 32, lane, i, bits_c,
                    c[n * m * 8 + s.row * 8 + s.column]);
      }
    }
  }
  TestProgram run(program.text);
  ASSERT_EQ(run.complaint("k", {.grid = {count}, .block = {32}}, in.data(), out.data()), "");
  const Sum sum{how, kind.a, kind.b, kind.c, kind.half};
  std::size_t wrong = 0;
  for (unsigned n = 0; n < count; ++n) {
    std::vector<std::vector<double>> rows(m, std::vector<double>(k)),
        columns(8, std::vector<double>(k));
    for (std::size_t i = 0; i < m * k; ++i) rows[i / k][i % k] = value(kind.a, a[n * m * k + i]);
    for (std::size_t i = 0; i < k * 8; ++i) columns[i % 8][i / 8] = value(kind.b, b[n * k * 8 + i]);
    for (unsigned lane = 0; lane < 32; ++lane) {
      for (unsigned i = 0; i < program.d * 32 / bits_c; ++i) {
        const Spot s = spot_c(lane, i);
        const std::uint32_t bits = c[n * m * 8 + s.row * 8 + s.column];
        const std::uint32_t right = sum.all(rows[s.row], columns[s.column], value(kind.c, bits));
        const std::uint32_t got =
            get_element(out.begin() + std::size_t(n) * outputs, lane, i, bits_c);
        if (got == right || ++wrong > 3) continue;
        ADD_FAILURE() << fmt::format(
            "{} {} {}: row {}, column {} of mma {}: {:#x}, but by the statement {:#x}", print(way),
            how.model, kind.types, s.row, s.column, n, got, right);
      }
    }
  }
  EXPECT_EQ(wrong, 0u) << print(way) << " " << how.model << " " << kind.shape << " " << kind.types;
}

/// 50 instructions are 12,800 outputs; eight of these runs per architecture.
void compare_volta(const Constants& how, bool half, bool a_by_column, bool b_by_column) {
  choose_model({"avx512", "checked"}, how.model);
  const unsigned bits_c = half ? 16 : 32, count = 50;
  MmaProgram program({"m8n8k4", half ? "f16.f16.f16.f16" : "f32.f16.f16.f32", 16, 16, 8, 16, bits_c,
                      bits_c});  // 128, 128, 256 elements
  const std::string layout =
      fmt::format(".{}.{}.", a_by_column ? "col" : "row", b_by_column ? "col" : "row");
  program.text.replace(program.text.find(".row.col."), 9, layout);
  const unsigned inputs = (program.a + program.b + program.c) * 32, outputs = program.d * 32;
  Buffer<std::uint32_t> in(std::size_t(inputs) * count), out(std::size_t(outputs) * count);
  Random random{how.together + 2 * layout.size() + (half ? 7u : 0u)};
  for (unsigned n = 0; n < count; ++n) {
    const unsigned mood = random.below(10);
    for (unsigned i = 0; i < inputs; ++i) {
      const bool is_c = i >= (program.a + program.b) * 32;
      std::uint32_t word = draw(random, mood, is_c && !half ? kF32 : kF16, is_c);
      if (!is_c || half) word |= draw(random, mood, kF16, is_c) << 16;
      in[std::size_t(n) * inputs + i] = word;
    }
  }
  TestProgram run(program.text);
  ASSERT_EQ(run.complaint("k", {.grid = {count}, .block = {32}}, in.data(), out.data()), "");
  const Sum sum{how, kF16, kF16, half ? kF16 : kF32, half};
  const bool lowered = how.model != "f32" && how.model != "sm_70" && how.model != "sm_75";
  std::size_t wrong = 0;
  for (unsigned n = 0; n < count; ++n) {
    const std::uint32_t* a = in.begin() + std::size_t(n) * inputs;
    const std::uint32_t* b = a + program.a * 32;
    for (unsigned lane = 0; lane < 32; ++lane) {
      const unsigned base = lane & 12;  // the first lane of the product
      for (unsigned i = 0; i < 8; ++i) {
        const unsigned upper = lane < 16 ? 0 : 4;
        const unsigned x = (lane & 1) + (i & 2);
        const unsigned row = half ? lane % 4 + upper : x + upper;
        const unsigned column = half ? i : (i & 4) + (lane & 2) + (i & 1);
        std::vector<double> left, right;
        for (unsigned k = 0; k < 4; ++k) {
          const unsigned a_lane = base + (row < 4 ? 0 : 16) + (a_by_column ? k : row % 4);
          const unsigned b_lane = base + (column < 4 ? 0 : 16) + (b_by_column ? column % 4 : k);
          left.push_back(value(kF16, get_element(a, a_lane, a_by_column ? row % 4 : k, 16)));
          right.push_back(value(kF16, get_element(b, b_lane, b_by_column ? k : column % 4, 16)));
        }
        const double start =
            value(half ? kF16 : kF32, get_element(b + program.b * 32, lane, i, bits_c));
        const std::uint32_t got =
            get_element(out.begin() + std::size_t(n) * outputs, lane, i, bits_c);
        wrong += got != (lowered ? sum.lowered(left, right, start) : sum.all(left, right, start));
      }
    }
  }
  EXPECT_EQ(wrong, 0u) << how.model << layout << (half ? "f16" : "f32");
}

class Models : public testing::TestWithParam<std::size_t> {};

// 800 instructions of 128 outputs: 102,400 sets of a row, a column and an accumulator.
TEST_P(Models, EveryArchitectureAsStated) {
  const Kind& kind = kinds()[GetParam()];
  for (const Constants& how : kind.models) compare(kind, how, {"avx512", "checked"}, 800);
}
TEST_P(Models, TheSameInEveryWay) {
  const Kind& kind = kinds()[GetParam()];
  for (const Constants& how : kind.models) {
    for (const Way& way : every_way()) compare(kind, how, way, 20);
  }
}
INSTANTIATE_TEST_SUITE_P(All, Models, testing::Range<std::size_t>(0, kinds().size()),
                         [](const auto& i) {
                           std::string name =
                               std::string(kinds()[i.param].shape) + "_" + kinds()[i.param].types;
                           std::replace(name.begin(), name.end(), '.', '_');
                           return name;
                         });

// --- m8n8k4 of Volta: four products, by quads of lanes q and q + 4, laid out as the PTX ISA says
// ---
TEST(Volta, FourProductsInEveryLayout) {
  std::vector<Constants> models = sixteen(false, 70);
  for (const Constants& how : models) {
    for (const bool half : {false, true}) {
      for (const unsigned layout : {0u, 1u, 2u, 3u}) {
        Constants own = how;
        if (half && how.model == "sm_70") own.floor = -19;
        if (half && (how.model == "sm_75" || how.kept == 24)) own.floor = -20;
        if (half && how.kept == 25) own.floor = -21;
        compare_volta(own, half, layout & 1, layout & 2);
      }
    }
  }
}

// --- worked out by hand ---
/// One output, as bits: a and b start with these 16-bit values, the rest is zero.
std::uint32_t one_output(const char* model, const char* types, std::vector<std::uint16_t> a,
                         std::vector<std::uint16_t> b, std::uint32_t c) {
  choose_model({"avx512", "checked"}, model);
  const unsigned bits_c = types[1] == '1' ? 16 : 32;
  const MmaProgram program({"m16n8k16", types, 16, 8, 16, 16, bits_c, bits_c});
  Buffer<std::uint32_t> in((program.a + program.b + program.c) * 32), out(program.d * 32);
  a.resize(16), b.resize(16);
  for (unsigned lane = 0; lane < 32; ++lane) {
    for (unsigned i = 0; i < 8; ++i) {
      const Spot s = spot_a(lane, i, 2, 16);
      put_element(in.begin(), lane, i, 16, s.row == 0 ? a[s.column] : 0);
    }
    for (unsigned i = 0; i < 4; ++i) {
      const Spot s = spot_b(lane, i, 2);
      put_element(in.begin() + program.a * 32, lane, i, 16, s.column == 0 ? b[s.row] : 0);
    }
  }
  in[(program.a + program.b) * 32] = c;
  TestProgram run(program.text);
  EXPECT_EQ(run.complaint("k", {.grid = {1}, .block = {32}}, in.data(), out.data()), "");
  return bits_c == 16 ? out[0] & 0xffff : out[0];
}
float one_sum(const char* model, const std::vector<std::uint16_t>& a,
              const std::vector<std::uint16_t>& b, float c) {
  return std::bit_cast<float>(
      one_output(model, "f32.f16.f16.f32", a, b, std::bit_cast<std::uint32_t>(c)));
}
constexpr std::uint16_t kOne = 0x3c00, kTiny = 0x0001;  // 1, 2^-24

TEST(ByHand, AddendsAreCutBelowTheLastBitKept) {
  // c = 1 and products of 2^-24: with 24 bits below the largest exponent each is kept, with 23 none
  // would be; 2^-25 = 2^-24 * 0.5 needs 25.
  const std::vector<std::uint16_t> tiny(4, kTiny), ones(4, kOne), halves(4, 0x3800);
  EXPECT_EQ(one_sum("sm_80", tiny, ones, 1.0f), 1.0f + 0x1p-22f);
  EXPECT_EQ(one_sum("sm_90", tiny, ones, 1.0f), 1.0f + 0x1p-22f);
  EXPECT_EQ(one_sum("sm_80", tiny, halves, 1.0f), 1.0f);
  EXPECT_EQ(one_sum("sm_90", tiny, halves, 1.0f), 1.0f + 0x1p-23f);
  EXPECT_EQ(one_sum("f32", tiny, ones, 1.0f), 1.0f);  // each sum is a tie, to even
}
TEST(ByHand, TheResultIsCutNotRounded) {
  const std::vector<std::uint16_t> one{kTiny}, three(3, kTiny);
  EXPECT_EQ(one_sum("sm_80", three, {kOne, kOne, kOne}, 1.0f), 1.0f + 0x1p-23f);  // 1.5 units
  EXPECT_EQ(one_sum("sm_80", three, {kOne, kOne, kOne}, -1.0f), -1.0f + 3 * 0x1p-24f);
  EXPECT_EQ(one_sum("sm_90", one, {kOne}, 1.0f), 1.0f);
}
// Fasi, Higham, Mikaitis and Pranesh (2021, section 3.5): sums that are cut are not monotone. With
// c just below a power of two its neighbours' small addends are kept; above, they are lost.
TEST(ByHand, SumsAreNotMonotone) {
  const std::vector<std::uint16_t> tiny(8, kTiny), halves(8, 0x3800);
  const float below = 1.0f - 0x1p-24f;
  EXPECT_EQ(one_sum("sm_80", tiny, halves, below), 1.0f + 0x1p-23f);
  EXPECT_EQ(one_sum("sm_80", tiny, halves, 1.0f), 1.0f);
}
TEST(ByHand, GroupsFollowEachOtherInOrderOfK) {
  // 2^24 + 1 in the first eight: cut to 24 bits when it leaves the group.
  std::vector<std::uint16_t> a(16), b(16);
  a[0] = 0x7000, b[0] = 0x6800, a[1] = kOne, b[1] = kOne;  // 2^13 * 2^11 + 1
  a[8] = 0xf000, b[8] = 0x6800, a[9] = kOne, b[9] = kOne;  // - 2^24 + 1
  EXPECT_EQ(one_sum("sm_80", a, b, 0.0f), 1.0f);
  EXPECT_EQ(one_sum("sm_90", a, b, 0.0f), 2.0f);  // one group: nothing is cut
  EXPECT_EQ(one_sum("f32", a, b, 0.0f), 1.0f);    // 2^24 + 1 is a tie, to even
}
TEST(ByHand, TheSameMatricesAddToWhatMakersDiffer) {
  // FTTN (Li et al. 2024): large terms that cancel, with small ones beside them.
  EXPECT_EQ(one_sum("sm_90", {0x7000, 0xf000, kOne}, {0x7000, 0x7000, kOne}, 0.0f), 0.0f);
  EXPECT_EQ(one_sum("f32", {0x7000, 0xf000, kOne}, {0x7000, 0x7000, kOne}, 0.0f), 1.0f);
}
// The largest exponent counts as no less than a floor, so that small addends are cut at 2^(floor -
// F).
TEST(ByHand, TheFloorOfHalfAccumulators) {
  // 2^-25 is a tie between 0 and the least f16; whatever is kept beside it decides.
  const auto sum = [](const char* model, std::uint16_t x, std::uint16_t y) {
    return one_output(model, "f16.f16.f16.f16", {0x0c00, x}, {0x0800, y},
                      0);  // 2^-12 * 2^-13 + x y
  };
  EXPECT_EQ(sum("sm_80", 0x0004, 0x0004), 1u);  // 2^-44 = 2^(-20 - 24)
  EXPECT_EQ(sum("sm_80", 0x0004, 0x0002), 0u);  // 2^-45
  EXPECT_EQ(sum("sm_89", 0x0004, 0x0004), 1u);
  EXPECT_EQ(sum("sm_89", 0x0004, 0x0002), 0u);
  EXPECT_EQ(sum("sm_90", 0x0002, 0x0002), 1u);  // 2^-46 = 2^(-21 - 25)
  EXPECT_EQ(sum("sm_90", 0x0002, 0x0001), 0u);
  EXPECT_EQ(sum("f32", 0x0001, 0x0001), 0u);  // 2^-25 has become 0 before 2^-48 is added
}
TEST(ByHand, TheFloorOfFloatAccumulators) {
  // 2^-149 - 2^-156, and 2^n beside it: the least float, or nothing.
  const auto sum = [](const char* model, std::size_t count, unsigned exponent) {
    std::vector<std::uint16_t> a(1 + count, std::uint16_t((127 - exponent + 70) << 7)),
        b(1 + count, (127 - 70) << 7);
    a[0] = (127 - 80) << 7 | 0x7e;  // 127/64 * 2^-80
    return one_output(model, "f32.bf16.bf16.f32", a, b, 0);
  };
  EXPECT_EQ(sum("sm_80", 1, 156), 1u);  // 2^(-132 - 24)
  EXPECT_EQ(sum("sm_80", 2, 157), 0u);
  EXPECT_EQ(sum("sm_89", 1, 156), 1u);
  EXPECT_EQ(sum("sm_89", 2, 157), 0u);
  EXPECT_EQ(sum("sm_90", 4, 158), 1u);  // 2^(-133 - 25)
  EXPECT_EQ(sum("sm_90", 8, 159), 0u);
}
TEST(ByHand, WhatAnArchitectureLacksIsNamed) {
  choose_model({"avx512", "checked"}, "sm_75");
  const MmaProgram program({"m16n8k16", "f32.bf16.bf16.f32", 16, 8, 16, 16, 32, 32});
  Buffer<std::uint32_t> in((program.a + program.b + program.c) * 32), out(program.d * 32);
  TestProgram run(program.text);
  const std::string trouble =
      run.complaint("k", {.grid = {1}, .block = {32}}, in.data(), out.data());
  EXPECT_NE(trouble.find("unsupported"), std::string::npos) << trouble;
  EXPECT_NE(
      trouble.find(
          "sm_75 has no such instruction; sm_80, sm_89, sm_90, sm_100, sm_120, and f32 have it"),
      std::string::npos)
      << trouble;
}

}  // namespace
}  // namespace attest::emulator
