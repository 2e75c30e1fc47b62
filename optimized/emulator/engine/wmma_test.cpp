// wmma against plain matrix products of small integers, which every model adds up exactly: every
// shape, type and layout, strides wider than the matrix, shared, global and generic memory.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "optimized/emulator/engine/testing/mma_program.hpp"

namespace attest::emulator {
namespace {

struct WmmaCase {
  const char* shape;
  unsigned m, n, k;
  std::string a, c;          // types of the operands and of the accumulators
  unsigned bits_ab, bits_c;  // of an element
  unsigned a_registers, b_registers, c_registers;
  bool by_k = false;  // A by row and B by column only
};

/// Element i of memory that holds values of a type.
void put_value(std::vector<std::uint8_t>& memory, std::size_t i, const std::string& type,
               int value) {
  const auto put = [&](auto x) { std::memcpy(memory.data() + i * sizeof(x), &x, sizeof(x)); };
  const auto f = float(value);
  std::uint32_t bits = 0;
  std::memcpy(&bits, &f, 4);
  if (type == "f16") {  // small integers: exponent and ten bits
    const int e = value ? std::ilogb(f) : -15;
    put(std::uint16_t(value ? (value < 0 ? 0x8000 : 0) | (e + 15) << 10 | ((bits >> 13) & 0x3ff)
                            : 0));
  }
  if (type == "bf16") put(std::uint16_t(bits >> 16));
  if (type == "tf32" || type == "f32") put(f);
  if (type == "f64") put(double(value));
  if (type == "s32") put(value);
  if (type == "s8" || type == "u8") put(std::uint8_t(value));
  if (type == "s4" || type == "u4")
    memory[i / 2] = std::uint8_t((memory[i / 2] & (0xf0 >> i % 2 * 4)) | (value & 15) << i % 2 * 4);
  if (type == "b1")
    memory[i / 8] = std::uint8_t((memory[i / 8] & ~(1 << i % 8)) | (value & 1) << i % 8);
}

/// Loads A, B and C, multiplies, stores D. Each operand has 8 KB of its own, in which a line takes
/// `stride` elements.
std::string program_of(const WmmaCase& w, const std::string& layouts, const std::string& space,
                       const unsigned (&stride)[3]) {
  const auto names = [](char letter, unsigned count) {
    std::string list;
    for (unsigned i = 0; i < count; ++i) list += fmt::format("{}%{}{}", i ? "," : "", letter, i);
    return "{" + list + "}";
  };
  const std::string la = layouts[0] == 'r' ? "row" : "col", lb = layouts[1] == 'r' ? "row" : "col",
                    lc = layouts[2] == 'r' ? "row" : "col";
  const std::string types =
      w.a == "f16" ? w.c + "." + w.c : w.c + "." + w.a + "." + w.a + "." + w.c;
  const std::string popc = w.a == "b1" ? ".xor.popc" : "";
  const auto line = [&](const char* part, const std::string& layout, const std::string& type,
                        char letter, unsigned count, unsigned at, unsigned step) {
    return fmt::format("wmma.load.{}.sync.aligned.{}.{}{}.{} {}, [%m+{}], {};\n", part, layout,
                       w.shape, space, type, names(letter, count), at, step);
  };
  const std::string product =
      w.a == "b1" ? fmt::format("wmma.mma{}.sync.aligned.row.col.{}.{} ", popc, w.shape, types)
                  : fmt::format("wmma.mma.sync.aligned.{}.{}.{}.{} ", la, lb, w.shape, types);
  const bool shared = space == ".shared" || space.empty();
  return fmt::format(
      ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 from)\n{{\n"
      ".shared .align 32 .b8 room[32768];\n.reg .b64 %m, %from, %at;\n.reg .b32 %t, %i, %v;\n.reg "
      ".pred %p;\n"
      ".reg .b{} %a<9>, %b<9>, %c<9>, %d<9>;\n"
      "ld.param.u64 %from, [from];\nmov.u64 %m, %from;\nmov.u32 %t, %tid.x;\nmul.wide.u32 %at, %t, "
      "4;\n"
      "add.u64 %from, %from, %at;\n{}{}{}{}{}{}, {}, {}, {};\n"
      "wmma.store.d.sync.aligned.{}.{}{}.{} [%m+24576], {}, {};\n{}ret;\n}}\n",
      w.bits_c == 64 ? 64 : 32,
      shared ? "mov.u64 %m, room;\nadd.u64 %at, %at, %m;\nmov.u32 %i, 0;\nIN:\nld.global.u32 %v, "
               "[%from];\n"
               "st.shared.u32 [%at], %v;\nadd.u64 %from, %from, 128;\nadd.u64 %at, %at, "
               "128;\nadd.u32 %i, %i, 1;\n"
               "setp.lt.u32 %p, %i, 256;\n@%p bra IN;\nbar.sync 0;\n"
             : "",
      space.empty() ? "cvta.shared.u64 %m, %m;\n" : "",
      line("a", la, w.a, 'a', w.a_registers, 0, stride[0]) +
          line("b", lb, w.a, 'b', w.b_registers, 8192, stride[1]) +
          line("c", lc, w.c, 'c', w.c_registers, 16384, stride[2]),
      product, "", names('d', w.c_registers), names('a', w.a_registers), names('b', w.b_registers),
      names('c', w.c_registers), lc, w.shape, space, w.c, names('d', w.c_registers), stride[2],
      shared ? "bar.sync 0;\nmov.u32 %i, 0;\nOUT:\nsub.u64 %at, %at, 128;\nsub.u64 %from, %from, "
               "128;\n"
               "ld.shared.u32 %v, [%at];\nst.global.u32 [%from], %v;\nadd.u32 %i, %i, 1;\n"
               "setp.lt.u32 %p, %i, 64;\n@%p bra OUT;\n"
             : "");
}

void compare(const WmmaCase& w, const std::string& layouts, const std::string& space,
             unsigned wider) {
  const bool row[3] = {layouts[0] == 'r', layouts[1] == 'r', layouts[2] == 'r'};
  // Lines stay aligned to 32 bytes.
  const unsigned add_ab = wider * 256 / w.bits_ab, add_c = wider * 256 / w.bits_c;
  const unsigned stride[3] = {(row[0] ? w.k : w.m) + add_ab, (row[1] ? w.n : w.k) + add_ab,
                              (row[2] ? w.n : w.m) + add_c};
  Random random{w.k + w.m};
  const bool is_signed = w.a[0] != 'u' && w.a[0] != 'b';
  const auto small = [&] {
    return w.a == "b1" ? int(random.below(2)) : int(random.below(8)) - (is_signed ? 4 : 0);
  };
  std::vector<int> a(w.m * w.k), b(w.k * w.n), c(w.m * w.n);
  std::vector<std::uint8_t> memory(32768);
  const auto fill = [&](std::vector<int>& x, unsigned columns, std::size_t part,
                        const std::string& type) {
    std::vector<std::uint8_t> own(8192);
    for (unsigned i = 0; i < x.size(); ++i) {
      x[i] = part == 2 ? int(random.below(64)) - 32 : small();
      const unsigned r = i / columns, q = i % columns;
      put_value(own, row[part] ? r * stride[part] + q : q * stride[part] + r, type, x[i]);
    }
    std::copy(own.begin(), own.end(), memory.begin() + long(part * 8192));
  };
  fill(a, w.k, 0, w.a), fill(b, w.n, 1, w.a), fill(c, w.n, 2, w.c);
  Buffer<std::uint8_t> in(32768);
  std::copy(memory.begin(), memory.end(), in.begin());
  TestProgram run(program_of(w, layouts, space, stride));
  ASSERT_EQ(run.complaint("k", {.block = {32}}, in.data()), "")
      << w.shape << w.a << layouts << space;
  std::vector<std::uint8_t> right(in.begin() + 24576, in.end());
  for (unsigned i = 0; i < w.m * w.n; ++i) {
    const unsigned r = i / w.n, q = i % w.n;
    int sum = c[i];
    for (unsigned k = 0; k < w.k; ++k) {
      const int x = a[r * w.k + k], y = b[k * w.n + q];
      sum += w.a == "b1" ? x ^ y : x * y;
    }
    put_value(right, row[2] ? r * stride[2] + q : q * stride[2] + r, w.c, sum);
  }
  // What lies between the lines must be as it was, too.
  EXPECT_TRUE(std::equal(right.begin(), right.end(), in.begin() + 24576))
      << w.shape << w.a << w.c << layouts << space;
}

const std::vector<WmmaCase>& cases() {
  static const std::vector<WmmaCase> all = [] {
    std::vector<WmmaCase> v;
    struct Extent {
      const char* shape;
      unsigned m, n;
    };
    for (const auto& [shape, m, n] :
         {Extent{"m16n16k16", 16, 16}, {"m32n8k16", 32, 8}, {"m8n32k16", 8, 32}}) {
      v.push_back({shape, m, n, 16, "f16", "f32", 16, 32, 8, 8, 8});
      v.push_back({shape, m, n, 16, "f16", "f16", 16, 16, 8, 8, 4});
      v.push_back({shape, m, n, 16, "bf16", "f32", 16, 32, m / 4, n / 4, 8});
      v.push_back({shape, m, n, 16, "s8", "s32", 8, 32, m / 8, n / 8, 8});
      v.push_back({shape, m, n, 16, "u8", "s32", 8, 32, m / 8, n / 8, 8});
    }
    v.push_back({"m16n16k8", 16, 16, 8, "tf32", "f32", 32, 32, 4, 4, 8});
    v.push_back({"m8n8k4", 8, 8, 4, "f64", "f64", 64, 64, 1, 1, 2});
    v.push_back({"m8n8k32", 8, 8, 32, "s4", "s32", 4, 32, 1, 1, 2, true});
    v.push_back({"m8n8k32", 8, 8, 32, "u4", "s32", 4, 32, 1, 1, 2, true});
    v.push_back({"m8n8k128", 8, 8, 128, "b1", "s32", 1, 32, 1, 1, 2, true});
    return v;
  }();
  return all;
}

TEST(Wmma, MultipliesInEveryShapeLayoutAndSpace) {
  for (const Way& way : every_way()) {
    SCOPED_TRACE(print(way));
    choose_model(way, "sm_90");
    for (const WmmaCase& w : cases()) {
      for (const char* layouts : {"rrr", "rrc", "rcr", "rcc", "crr", "crc", "ccr", "ccc"}) {
        if (w.by_k && (layouts[0] != 'r' || layouts[1] != 'c')) continue;
        for (const char* space : {".global", ".shared", ""})
          compare(w, layouts, space, space[0] ? 1 : 0);
      }
    }
  }
}

TEST(Wmma, EveryModelAddsIntegersExactly) {
  for (const char* model :
       {"f32", "sm_70", "sm_75", "sm_80", "sm_89", "sm_90", "sm_100", "sm_120"}) {
    choose_model({"avx512", "checked"}, model);
    compare(cases()[0], "rcr", ".shared", 0);
    compare(cases()[1], "rcr", ".shared", 0);
  }
}

// D and C may differ in type: a sum of f16 accumulators and integers, delivered as f32, and back.
TEST(Wmma, AccumulatorsOfDifferentTypes) {
  for (const Way& way : every_way()) {
    SCOPED_TRACE(print(way));
    for (const char* model : {"f32", "sm_70", "sm_80", "sm_90"}) {
      for (const bool half_c : {true, false}) {
        choose_model(way, model);
        const std::string c = half_c ? "f16" : "f32", d = half_c ? "f32" : "f16";
        const unsigned c_registers = half_c ? 4 : 8, d_registers = half_c ? 8 : 4;
        std::string text = program_of(
            {"m16n16k16", 16, 16, 16, "f16", c, 16, half_c ? 16u : 32u, 8, 8, c_registers}, "rcr",
            ".global", {16, 16, 16});
        const auto replace = [&](const std::string& from, const std::string& to) {
          ASSERT_NE(text.find(from), std::string::npos) << text;
          text.replace(text.find(from), from.size(), to);
        };
        std::string old_d = "{", new_d = "{";
        for (unsigned i = 0; i < c_registers; ++i) old_d += fmt::format("{}%d{}", i ? "," : "", i);
        for (unsigned i = 0; i < d_registers; ++i) new_d += fmt::format("{}%d{}", i ? "," : "", i);
        replace("m16n16k16." + c + "." + c + " " + old_d, "m16n16k16." + d + "." + c + " " + new_d);
        replace(".global." + c + " [%m+24576], " + old_d, ".global." + d + " [%m+24576], " + new_d);
        std::vector<std::uint8_t> memory(32768), part(8192);
        for (unsigned i = 0; i < 256; ++i) {
          put_value(part, i, "f16", int(i % 7) - 3);
        }
        std::copy(part.begin(), part.end(), memory.begin());
        std::copy(part.begin(), part.end(), memory.begin() + 8192);
        std::fill(part.begin(), part.end(), std::uint8_t(0));
        for (unsigned i = 0; i < 256; ++i) put_value(part, i, c, int(i) - 128);
        std::copy(part.begin(), part.end(), memory.begin() + 16384);
        std::vector<std::uint8_t> right(8192);
        for (unsigned i = 0; i < 256; ++i) {
          int sum = int(i) - 128;
          for (unsigned k = 0; k < 16; ++k)
            sum += (int((i / 16 * 16 + k) % 7) - 3) * (int((i % 16 * 16 + k) % 7) - 3);
          put_value(right, i, d, sum);
        }
        Buffer<std::uint8_t> in(32768);
        std::copy(memory.begin(), memory.end(), in.begin());
        ASSERT_EQ(TestProgram(text).complaint("k", {.block = {32}}, in.data()), "") << text;
        EXPECT_TRUE(std::equal(right.begin(), right.end(), in.begin() + 24576))
            << print(way) << model << d << c;
      }
    }
  }
}

TEST(Wmma, LinesMustBeAlignedAndInBounds) {
  choose_model({"avx512", "checked"}, "sm_90");
  const auto trouble = [](unsigned stride) {
    Device::instance().reset_findings();
    Buffer<std::uint8_t> in(32768);
    return TestProgram(program_of(cases()[0], "rcr", ".global", {stride, 16, 16}))
        .complaint("k", {.block = {32}}, in.data());
  };
  EXPECT_EQ(trouble(24), "");  // 48 bytes: 16 is what loads need
  const std::string misplaced = trouble(17);
  EXPECT_NE(misplaced.find("not aligned to 16 bytes"), std::string::npos) << misplaced;
  const std::string beyond = trouble(4096);
  EXPECT_NE(beyond.find("reads 16 bytes of global memory"), std::string::npos) << beyond;
  EXPECT_TRUE(beyond.starts_with("k: memcheck")) << beyond;
}

}  // namespace
}  // namespace attest::emulator
