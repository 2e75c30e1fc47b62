// Matrix instructions whose results are exact: mma of integers, bits and doubles, in the layouts
// that the PTX ISA tells; ldmatrix, stmatrix and movmatrix; wmma against plain matrix products; and
// what happens when not all lanes of a warp come.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>

#include "optimized/emulator/engine/testing/mma_program.hpp"

namespace attest::emulator {
namespace {

struct IntegerCase {
  MmaCase mma;
  bool signed_a, signed_b;
};
std::int64_t integer(std::uint32_t bits, unsigned width, bool is_signed) {
  if (is_signed && width < 32 && (bits >> (width - 1)) & 1)
    return std::int64_t(bits) - (1 << width);
  return bits;
}

void compare_integers(const IntegerCase& of, const Way& way) {
  choose_model(way, "sm_80");
  const MmaCase& c = of.mma;
  const MmaProgram program(c);
  constexpr unsigned kCount = 20;
  const unsigned inputs = (program.a + program.b + program.c) * 32, outputs = program.d * 32;
  Buffer<std::uint32_t> in(inputs * kCount), out(outputs * kCount);
  Random random{inputs};
  for (std::uint32_t& word : in) word = std::uint32_t(random());
  TestProgram run(program.text);
  ASSERT_EQ(run.complaint("k", {.grid = {kCount}, .block = {32}}, in.data(), out.data()), "");
  const unsigned per = 32 / c.bits_ab;
  for (unsigned n = 0; n < kCount; ++n) {
    const std::uint32_t* a = in.begin() + n * inputs;
    const std::uint32_t* b = a + program.a * 32;
    std::vector<std::int64_t> x(c.m * c.k), y(c.k * 8);
    for (unsigned lane = 0; lane < 32; ++lane) {
      for (unsigned i = 0; i < program.a * per; ++i) {
        const Spot s = spot_a(lane, i, per, c.m);
        x[s.row * c.k + s.column] =
            integer(get_element(a, lane, i, c.bits_ab), c.bits_ab, of.signed_a);
      }
      for (unsigned i = 0; i < program.b * per; ++i) {
        const Spot s = spot_b(lane, i, per);
        y[s.row * 8 + s.column] =
            integer(get_element(b, lane, i, c.bits_ab), c.bits_ab, of.signed_b);
      }
    }
    for (unsigned lane = 0; lane < 32; ++lane) {
      for (unsigned i = 0; i < program.d; ++i) {
        const Spot s = spot_c(lane, i);
        std::int64_t sum = std::int32_t(b[(program.b + i) * 32 + lane]);
        for (unsigned k = 0; k < c.k; ++k) {
          const std::int64_t p = x[s.row * c.k + k], q = y[k * 8 + s.column];
          sum += c.after == ".xor.popc" ? p ^ q : p * q;  // of bits, & is the product
        }
        if (c.after == ".satfinite") sum = std::clamp<std::int64_t>(sum, -0x80000000ll, 0x7fffffff);
        ASSERT_EQ(out[n * outputs + i * 32 + lane], std::uint32_t(sum))
            << print(way) << " " << c.shape << c.types << c.after << ": row " << s.row
            << ", column " << s.column;
      }
    }
  }
}

TEST(Integers, EveryShapeAndSign) {
  for (const Way& way : every_way()) {
    for (const auto& [shape, m, k] :
         {std::tuple{"m8n8k16", 8u, 16u}, {"m16n8k16", 16u, 16u}, {"m16n8k32", 16u, 32u}}) {
      compare_integers({{shape, "s32.s8.s8.s32", m, 8, k, 8, 32, 32}, true, true}, way);
      compare_integers({{shape, "s32.u8.s8.s32", m, 8, k, 8, 32, 32, ".satfinite"}, false, true},
                       way);
      compare_integers({{shape, "s32.s8.u8.s32", m, 8, k, 8, 32, 32}, true, false}, way);
      compare_integers({{shape, "s32.u8.u8.s32", m, 8, k, 8, 32, 32, ".satfinite"}, false, false},
                       way);
    }
    for (const auto& [shape, m, k] :
         {std::tuple{"m8n8k32", 8u, 32u}, {"m16n8k32", 16u, 32u}, {"m16n8k64", 16u, 64u}}) {
      compare_integers({{shape, "s32.s4.s4.s32", m, 8, k, 4, 32, 32}, true, true}, way);
      compare_integers({{shape, "s32.u4.s4.s32", m, 8, k, 4, 32, 32, ".satfinite"}, false, true},
                       way);
      compare_integers({{shape, "s32.u4.u4.s32", m, 8, k, 4, 32, 32}, false, false}, way);
    }
    for (const auto& [shape, m, k] :
         {std::tuple{"m8n8k128", 8u, 128u}, {"m16n8k128", 16u, 128u}, {"m16n8k256", 16u, 256u}}) {
      compare_integers({{shape, "s32.b1.b1.s32", m, 8, k, 1, 32, 32, ".xor.popc"}, false, false},
                       way);
      compare_integers({{shape, "s32.b1.b1.s32", m, 8, k, 1, 32, 32, ".and.popc"}, false, false},
                       way);
    }
  }
}

TEST(Integers, SaturationStopsAtTheEnds) {
  choose_model({"avx512", "checked"}, "sm_80");
  for (const char* after : {"", ".satfinite"}) {
    const MmaProgram program({"m16n8k32", "s32.u8.u8.s32", 16, 8, 32, 8, 32, 32, after});
    Buffer<std::uint32_t> in((program.a + program.b + program.c) * 32, 0xffffffffu),
        out(program.d * 32);
    for (unsigned i = 0; i < program.c * 32; ++i)
      in[(program.a + program.b) * 32 + i] = 0x7ffffff0u;
    TestProgram run(program.text);
    ASSERT_EQ(run.complaint("k", {.grid = {1}, .block = {32}}, in.data(), out.data()), "");
    EXPECT_EQ(out[0], *after ? 0x7fffffffu : 0x7ffffff0u + 32 * 255 * 255);
  }
}

TEST(Doubles, FusedInOrderOfK) {
  struct Form {
    const char* shape;
    unsigned m, k;
  };
  for (const Way& way : every_way()) {
    for (const auto& [shape, m, k] :
         {Form{"m8n8k4", 8, 4}, {"m16n8k4", 16, 4}, {"m16n8k8", 16, 8}, {"m16n8k16", 16, 16}}) {
      choose_model(way, "sm_90");
      const MmaProgram program({shape, "f64.f64.f64.f64", m, 8, k, 64, 64, 64});
      Buffer<double> in((program.a + program.b + program.c) * 32), out(program.d * 32);
      Random random{k};
      for (double& v : in)
        v = std::ldexp(double(std::int64_t(random())), -60 - int(random.below(20)));
      TestProgram run(program.text);
      ASSERT_EQ(run.complaint("k", {.grid = {1}, .block = {32}}, in.data(), out.data()), "");
      std::vector<double> x(m * k), y(k * 8);
      for (unsigned lane = 0; lane < 32; ++lane) {
        for (unsigned i = 0; i < program.a; ++i) {
          const Spot s = spot_a(lane, i, 1, m);
          x[s.row * k + s.column] = in[i * 32 + lane];
        }
        for (unsigned i = 0; i < program.b; ++i) {
          const Spot s = spot_b(lane, i, 1);
          y[s.row * 8 + s.column] = in[(program.a + i) * 32 + lane];
        }
      }
      for (unsigned lane = 0; lane < 32; ++lane) {
        for (unsigned i = 0; i < program.d; ++i) {
          const Spot s = spot_c(lane, i);
          double sum = in[(program.a + program.b + i) * 32 + lane];
          for (unsigned l = 0; l < k; ++l)
            sum = std::fma(x[s.row * k + l], y[l * 8 + s.column], sum);
          ASSERT_EQ(std::bit_cast<std::uint64_t>(out[i * 32 + lane]),
                    std::bit_cast<std::uint64_t>(sum))
              << shape;
        }
      }
    }
  }
}

/// A kernel of one warp with 4 KB of shared memory, filled with word i at 4 i; `body` sees %t, %sh
/// (the address of the matrices' row of this lane, 80 bytes apart), and stores %d0 ... %d3 in the
/// end.
std::string rows_program(const std::string& body, bool generic) {
  return fmt::format(
      ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 to)\n{{\n"
      ".shared .align 16 .b8 room[4096];\n.reg .b32 %t, %sh, %i, %v, %d<4>;\n.reg .b64 %to, %at, "
      "%wide;\n"
      ".reg .pred %p;\nld.param.u64 %to, [to];\nmov.u32 %t, %tid.x;\nmov.u32 %i, %t;\n"
      "FILL:\nshl.b32 %v, %i, 2;\nmov.u32 %sh, room;\nadd.u32 %sh, %sh, %v;\nst.shared.u32 [%sh], "
      "%i;\n"
      "add.u32 %i, %i, 32;\nsetp.lt.u32 %p, %i, 1024;\n@%p bra FILL;\nbar.sync 0;\n"
      "mul.lo.u32 %v, %t, 80;\nmov.u32 %sh, room;\nadd.u32 %sh, %sh, %v;\n"
      "mov.b32 %d0, %t;\nadd.u32 %d1, %t, 32;\nadd.u32 %d2, %t, 64;\nadd.u32 %d3, %t, 96;\n"
      "cvt.u64.u32 %wide, %sh;\n{}{}\nbar.sync 0;\n"
      "mul.wide.u32 %at, %t, 4;\nadd.u64 %to, %to, %at;\n"
      "st.global.u32 [%to], %d0;\nst.global.u32 [%to+128], %d1;\nst.global.u32 [%to+256], %d2;\n"
      "st.global.u32 [%to+384], %d3;\nmov.u32 %sh, room;\nmov.u32 %i, 0;\n"
      "COPY:\nshl.b32 %v, %t, 2;\nadd.u32 %v, %v, %sh;\nld.shared.u32 %v, [%v];\nst.global.u32 "
      "[%to+512], %v;\n"
      "add.u32 %sh, %sh, 128;\nadd.u64 %to, %to, 128;\nadd.u32 %i, %i, 1;\nsetp.lt.u32 %p, %i, "
      "32;\n"
      "@%p bra COPY;\nret;\n}}\n",
      generic ? "cvta.shared.u64 %wide, %wide;\n" : "", body);
}
/// 16-bit element e of row r of matrix m, as rows_program fills them.
std::uint32_t element_of(unsigned m, unsigned r, unsigned e) {
  const unsigned byte = (8 * m + r) * 80 + 2 * e;
  return (byte / 4) >> (byte % 4 * 8) & 0xffff;
}

TEST(Rows, LdmatrixGivesEachLaneItsElements) {
  for (const Way& way : every_way()) {
    for (const unsigned count : {1u, 2u, 4u}) {
      for (const bool trans : {false, true}) {
        for (const std::string& spelling :
             {fmt::format("ldmatrix.sync.aligned.m8n8.x{}{}.shared.b16", count,
                          trans ? ".trans" : ""),
              fmt::format("ldmatrix.sync.aligned.x{}{}.m8n8.shared::cta.b16", count,
                          trans ? ".trans" : ""),
              fmt::format("ldmatrix.sync.aligned.m8n8.x{}{}.b16", count, trans ? ".trans" : "")}) {
          const bool generic = spelling.find("shared") == std::string::npos;
          const std::string to = count == 1   ? "{%d0}"
                                 : count == 2 ? "{%d0,%d1}"
                                              : "{%d0,%d1,%d2,%d3}";
          choose_model(way, "sm_90");
          TestProgram run(rows_program(
              fmt::format("{} {}, [{}];", spelling, to, generic ? "%wide" : "%sh"), generic));
          Buffer<std::uint32_t> out(128 + 1024);
          ASSERT_EQ(run.complaint("k", {.block = {32}}, out.data()), "") << spelling;
          for (unsigned m = 0; m < count; ++m) {
            for (unsigned lane = 0; lane < 32; ++lane) {
              const unsigned r = lane / 4, e = lane % 4 * 2;
              const std::uint32_t low = trans ? element_of(m, e, r) : element_of(m, r, e);
              const std::uint32_t high = trans ? element_of(m, e + 1, r) : element_of(m, r, e + 1);
              ASSERT_EQ(out[32 * m + lane], low | high << 16)
                  << print(way) << " " << spelling << " lane " << lane;
            }
          }
        }
      }
    }
  }
}

TEST(Rows, StmatrixUndoesLdmatrixAndMovmatrixTransposes) {
  for (const Way& way : every_way()) {
    choose_model(way, "sm_90");
    // Matrices 0 ... 3 are stored one row set further, transposed twice on the way.
    TestProgram run(
        rows_program("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%d0,%d1,%d2,%d3}, [%sh];\n"
                     "movmatrix.sync.aligned.m8n8.trans.b16 %d0, %d0;\n"
                     "stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%sh+16], {%d0};\n"
                     "stmatrix.sync.aligned.x4.m8n8.shared.b16 [%sh+32], {%d0,%d1,%d2,%d3};",
                     false));
    Buffer<std::uint32_t> out(128 + 1024);
    ASSERT_EQ(run.complaint("k", {.block = {32}}, out.data()), "");
    const auto half_at = [&](unsigned byte) {
      return (out[128 + byte / 4] >> (byte % 4 * 8)) & 0xffff;
    };
    for (unsigned m = 0; m < 4; ++m) {
      for (unsigned r = 0; r < 8; ++r) {
        for (unsigned e = 0; e < 8; ++e) {
          const unsigned row = (8 * m + r) * 80;
          if (m == 0) ASSERT_EQ(half_at(row + 16 + 2 * e), element_of(0, r, e));
          ASSERT_EQ(half_at(row + 32 + 2 * e), m == 0 ? element_of(0, e, r) : element_of(m, r, e));
        }
      }
    }
  }
}

TEST(Rows, MisplacedRowsAreFaults) {
  choose_model({"avx512", "checked"}, "sm_90");
  const auto trouble = [](const std::string& body) {
    Device::instance().reset_findings();
    Buffer<std::uint32_t> out(128 + 1024);
    return TestProgram(rows_program(body, true)).complaint("k", {.block = {32}}, out.data());
  };
  const std::string off =
      trouble("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%d0,%d1,%d2,%d3}, [%sh+8];");
  EXPECT_NE(off.find("reads 16 bytes of shared memory"), std::string::npos) << off;
  EXPECT_NE(off.find("not aligned to 16 bytes"), std::string::npos) << off;
  const std::string out =
      trouble("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%sh+3840], {%d0,%d1,%d2,%d3};");
  EXPECT_NE(out.find("writes 16 bytes of shared memory at offset 0x1040"), std::string::npos)
      << out;
  const std::string away = trouble("ldmatrix.sync.aligned.m8n8.x1.b16 {%d0}, [%to];");
  EXPECT_NE(away.find("does not lie in shared memory"), std::string::npos) << away;
  // Lanes beyond those that give addresses may hold anything.
  EXPECT_EQ(trouble("setp.gt.u32 %p, %t, 7;\n@%p mov.u32 %sh, 1;\n"
                    "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%d0}, [%sh];"),
            "");
}

TEST(Aligned, AllLanesMustCome) {
  choose_model({"avx512", "checked"}, "sm_90");
  const auto trouble = [](const std::string& body, unsigned threads = 32) {
    Device::instance().reset_findings();
    Buffer<std::uint32_t> out(128 + 1024);
    return TestProgram(rows_program(body, false)).complaint("k", {.block = {threads}}, out.data());
  };
  const std::string move = "movmatrix.sync.aligned.m8n8.trans.b16 %d0, %d0;\n";
  const std::string apart = trouble("setp.lt.u32 %p, %t, 16;\n@%p bra HALF;\n" + move +
                                    "bra DONE;\nHALF:\n" + move + "DONE:\n");
  EXPECT_TRUE(apart.starts_with("k: barrier: ")) << apart;
  EXPECT_NE(apart.find("all of them must execute this together"), std::string::npos) << apart;
  const std::string guarded = trouble("setp.lt.u32 %p, %t, 31;\n@%p " + move);
  EXPECT_TRUE(guarded.starts_with("k: barrier: ")) << guarded;
  const std::string gone = trouble("setp.lt.u32 %p, %t, 1;\n@%p exit;\n" + move);
  EXPECT_NE(gone.find("the lanes 0x00000001 of the warp have exited"), std::string::npos) << gone;
  const std::string few = trouble(move, 16);
  EXPECT_NE(few.find("the warp has 16 threads, and it takes 32"), std::string::npos) << few;
  // Lanes that part and meet again before it are no fault, wherever the compiler put their blocks.
  EXPECT_EQ(trouble("setp.lt.u32 %p, %t, 16;\n@%p bra LATER;\nBACK:\n" + move +
                    "bra OUT;\nLATER:\nadd.u32 %d1, %d1, 1;\nbra BACK;\nOUT:\n"),
            "");
}

}  // namespace
}  // namespace attest::emulator
