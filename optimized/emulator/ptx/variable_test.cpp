// Variables and their initialisers: sizes, alignment, bytes, addresses.
#include <gtest/gtest.h>

#include <bit>
#include <cstring>

#include "optimized/emulator/ptx/module.hpp"

namespace attest::emulator::ptx {
namespace {

Variable variable(const std::string& declaration) {
  return parse(".version 9.0 .target sm_80 .func fn { ret; } .global .u64 other;" + declaration)
      .variables.at(1);
}
std::vector<int> bytes_of(const Variable& variable) {
  std::vector<int> result;
  for (const std::byte value : variable.initial) result.push_back(static_cast<int>(value));
  return result;
}

TEST(Variable, HasSizeAndAlignment) {
  const Variable plain = variable(".global .align 16 .b8 a[3][5];");
  EXPECT_EQ(plain.bytes, 15U);
  EXPECT_EQ(plain.alignment, 16U);
  EXPECT_TRUE(plain.initial.empty());
  const Variable vector = variable(".const .v4 .f32 v[2];");
  EXPECT_EQ(vector.bytes, 32U);
  EXPECT_EQ(vector.alignment, 16U);
  EXPECT_EQ(vector.space, Space::constant);
  const Variable dynamic = variable(".extern .shared .align 128 .b8 sm[];");
  EXPECT_TRUE(dynamic.external);
  EXPECT_EQ(dynamic.bytes, 0U);
  EXPECT_EQ(dynamic.space, Space::shared);
  EXPECT_EQ(variable(".global .attribute(.managed) .align 4 .u32 m = 5;").bytes, 4U);
}

TEST(Variable, IsInitialisedInItsType) {
  EXPECT_EQ(bytes_of(variable(".global .b8 a[4] = {1, 0xFF, -1};")),
            (std::vector<int>{1, 255, 255, 0}));
  EXPECT_EQ(bytes_of(variable(".global .u16 a[2] = {513};")), (std::vector<int>{1, 2, 0, 0}));
  for (const char* spelling : {"1.5", "0f3FC00000", "0d3FF8000000000000"}) {
    const Variable one = variable(std::string(".global .f32 a = ") + spelling + ";");
    float value = 0;
    std::memcpy(&value, one.initial.data(), sizeof value);
    EXPECT_EQ(value, 1.5F) << spelling;
  }
  const Variable wide = variable(".global .f64 a = 0f3FC00000;");
  double value = 0;
  std::memcpy(&value, wide.initial.data(), sizeof value);
  EXPECT_EQ(value, 1.5);
}

TEST(Variable, NestsBraces) {
  EXPECT_EQ(bytes_of(variable(".global .b8 a[2][3] = {{1}, {4, 5, 6}};")),
            (std::vector<int>{1, 0, 0, 4, 5, 6}));
  EXPECT_EQ(bytes_of(variable(".global .b8 a[2][3] = {1, 2, 3, 4};")),
            (std::vector<int>{1, 2, 3, 4, 0, 0}));
  const Variable open = variable(".global .b8 a[][2] = {{1}, {2}, {3}};");
  EXPECT_EQ(open.bytes, 6U);
  EXPECT_EQ(bytes_of(open), (std::vector<int>{1, 0, 2, 0, 3, 0}));
}

TEST(Variable, HoldsAddresses) {
  const Variable table = variable(".global .u64 t[4] = {0, fn, generic(other)+8, other-8};");
  ASSERT_EQ(table.patches.size(), 3U);
  EXPECT_EQ(table.patches[0].offset, 8U);
  EXPECT_EQ(table.patches[0].target.name, "fn");
  EXPECT_EQ(table.patches[0].bytes, 8U);
  EXPECT_EQ(table.patches[1].target.name, "other");
  EXPECT_EQ(table.patches[1].target.addend, 8);
  EXPECT_EQ(table.patches[2].target.addend, -8);
  EXPECT_EQ(table.initial.size(), 32U);
  EXPECT_EQ(variable(".global .u64 t = generic(later); .global .u32 later;").patches.size(), 1U);
}

TEST(Variable, GathersTheBytesOfAnAddress) {
  const Variable packed = variable(
      ".global .b8 s[10] = {7, 0xFF(fn), 0xFF00(fn), 0xFF0000(fn), 0xFF000000(fn), "
      "0xFF00000000(fn), 0xFF0000000000(fn), 0xFF000000000000(fn), 0xFF00000000000000(fn), 9};");
  ASSERT_EQ(packed.patches.size(), 1U);
  EXPECT_EQ(packed.patches[0].offset, 1U);
  EXPECT_EQ(packed.patches[0].bytes, 8U);
  EXPECT_EQ(static_cast<int>(packed.initial[9]), 9);
}

TEST(Variable, IsRefused) {
  for (const char* wrong : {
           ".global .b8 a[2] = {1, 2, 3};",
           ".global .b8 a[2][2] = {{1, 2, 3}};",
           ".global .b8 a[2] = {{1}};",
           ".global .b8 a[0][0] = {{1}};",
           ".global .b8 a[][0] = {{1}};",
           ".global .b8 a[2][] ;",
           ".global .u64 t = nowhere;",
           ".global .u16 t = other;",
           ".global .b8 t[2] = {0xFF00(other)};",
           ".global .b8 t[2] = {0xFFFF(other)};",
           ".global .u32 a = 1.5;",
           ".shared .u32 a = 1;",
           ".global .align 3 .u32 a;",
           ".global .align 1048576 .u32 a;",
           ".global .pred a;",
           ".global .u32 .u32 a;",
           ".global .u32 other;",
           ".global .texref t;",
           ".global .b8 a[4294967296][4294967296];",
           ".global .u64 a[4294967296];",
           ".global .b8 a[400000000] = {1};",
           ".global .u32 a = 1/0;",
           ".global .u32 a = 99999999999999999999;",
       }) {
    EXPECT_THROW(variable(wrong), SyntaxError) << wrong;
  }
}

}  // namespace
}  // namespace attest::emulator::ptx
