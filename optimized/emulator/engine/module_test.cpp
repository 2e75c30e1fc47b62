// What a module holds beside one kernel's instructions: tables of labels, aliases, shared variables
// of several functions, malloc and free, and lines that were inlined from headers.
#include <gtest/gtest.h>

#include <string>

#include "optimized/emulator/engine/testing/test_program.hpp"

namespace attest::emulator {
namespace {

const std::string kHead =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".extern .func (.param .b64 r) malloc(.param .b64 n);\n.extern .func free(.param .b64 p);\n";
const std::string kRegisters =
    ".reg .b32 %r<9>;\n.reg .b64 %rd<9>;\n.reg .pred %p<3>;\nld.param.u64 %rd1, [out];\n"
    "mov.u32 %r0, %tid.x;\nmul.wide.u32 %rd2, %r0, 4;\nadd.u64 %rd2, %rd1, %rd2;\n";

class Module : public testing::Test {
 protected:
  void SetUp() override { choose(""); }
  void TearDown() override { Device::instance().reset_findings(); }
};

std::string module_with(const std::string& functions, const std::string& body) {
  return kHead + functions + ".visible .entry k(.param .u64 out)\n{\n" + kRegisters + body +
         "\nret;\n}\n";
}

TEST_F(Module, BranchesByIndex) {
  TestProgram program(module_with("",
                                  "TABLE: .branchtargets A, B, C;\nrem.u32 %r1, %r0, 3;\n"
                                  "brx.idx %r1, TABLE;\nA: mov.u32 %r2, 10;\nbra END;\n"
                                  "B: mov.u32 %r2, 20;\nbra END;\nC: mov.u32 %r2, 30;\n"
                                  "END: st.global.u32 [%rd2], %r2;"));
  Buffer<int> out(7);
  EXPECT_EQ(program.trouble("k", {{1}, {7}}, out.data()), "");
  EXPECT_EQ(out.values(), (std::vector<int>{10, 20, 30, 10, 20, 30, 10}));
}

TEST_F(Module, AnIndexBeyondTheTableIsAFinding) {
  TestProgram program(
      module_with("",
                  "TABLE: .branchtargets A, B;\nbrx.idx %r0, TABLE;\nA: nanosleep.u32 1;\n"
                  "B: st.global.u32 [%rd2], %r0;"));
  Buffer<int> out(3);
  EXPECT_NE(program.trouble("k", {{1}, {3}}, out.data()).find("not below 2"), std::string::npos);
}

const std::string kAdder = ".func (.reg .b32 o) NAME(.reg .b32 i)\n{\nadd.s32 o, i, 5;\nret;\n}\n";

TEST_F(Module, AnAliasIsAnotherNameOfAFunction) {
  std::string adder = kAdder;
  adder.replace(adder.find("NAME"), 4, "adder");
  TestProgram program(
      module_with(".func (.reg .b32 o) other(.reg .b32 i);\n" + adder + ".alias other, adder;\n",
                  "call (%r1), other, (%r0);\nst.global.u32 [%rd2], %r1;"));
  Buffer<int> out(2);
  EXPECT_EQ(program.trouble("k", {{1}, {2}}, out.data()), "");
  EXPECT_EQ(out.values(), (std::vector<int>{5, 6}));
}

TEST_F(Module, SharedVariablesOfTwoFunctionsAreTwo) {
  const auto writer = [](const std::string& name, int value) {
    return ".func " + name + "()\n{\n.shared .align 4 .b8 mine[4];\nst.shared.u32 [mine], " +
           std::to_string(value) + ";\nret;\n}\n";
  };
  const std::string reader =
      ".func (.reg .b32 o) both(.reg .b32 i)\n{\n.shared .align 4 .b8 mine[4];\n"
      "st.shared.u32 [mine], 3;\ncall one, ();\ncall two, ();\nld.shared.u32 o, [mine];\nret;\n}\n";
  TestProgram program(module_with(writer("one", 1) + writer("two", 2) + reader,
                                  "call (%r1), both, (%r0);\nst.global.u32 [%rd2], %r1;"));
  Buffer<int> out(1);
  EXPECT_EQ(program.trouble("k", {{1}, {1}}, out.data()), "");
  EXPECT_EQ(out[0], 3);
  EXPECT_EQ(Device::instance().facts(program.module(), "k").static_shared_bytes, 12u);
}

const std::string kAllocate =
    "{ .param .b64 n; .param .b64 r; st.param.b64 [n], 64; call (r), malloc, (n); "
    "ld.param.b64 %rd3, [r]; }\nst.global.u32 [%rd3], %r0;\nld.global.u32 %r1, [%rd3];\n"
    "st.global.u32 [%rd2], %r1;\n{ .param .b64 p; st.param.b64 [p], %rd3; call free, (p); }\n";

TEST_F(Module, KernelsAllocate) {
  TestProgram program(module_with("", kAllocate));
  Buffer<int> out(40);
  const std::size_t before = Device::instance().bytes_in_use();
  EXPECT_EQ(program.trouble("k", {{1}, {40}}, out.data()), "");
  EXPECT_EQ(Device::instance().bytes_in_use(), before);
  for (int i = 0; i < 40; ++i) EXPECT_EQ(out[i], i);
}

TEST_F(Module, FreeingTwiceAndFreeingWhatMallocDidNotGiveAreFindings) {
  TestProgram twice(
      module_with("", kAllocate + "{ .param .b64 p; st.param.b64 [p], %rd3; call free, (p); }"));
  Buffer<int> out(1);
  EXPECT_NE(twice.trouble("k", {{1}, {1}}, out.data()).find("frees"), std::string::npos);
  TestProgram other(module_with("", "{ .param .b64 p; st.param.b64 [p], %rd1; call free, (p); }"));
  EXPECT_NE(other.trouble("k", {{1}, {1}}, out.data()).find("frees"), std::string::npos);
}

TEST_F(Module, ALineInlinedFromAHeaderOfTheToolkitIsNamedByItsCaller) {
  const std::string text =
      module_with("",
                  ".loc 1 40 3\n.loc 3 9 1, function_name $L, inlined_at 1 40 3\n"
                  ".loc 2 7 5, function_name $L, inlined_at 3 9 1\n"
                  "mov.u64 %rd3, 8;\nst.global.u32 [%rd3], %r0;") +
      ".file 1 \"source/kernel.cu\"\n.file 2 \"/usr/local/cuda/include/cuda_fp16.hpp\"\n"
      ".file 3 \"source/tile.cuh\"\n";
  TestProgram program(text);
  Buffer<int> out(1);
  const std::string trouble = program.trouble("k", {{1}, {1}}, out.data());
  EXPECT_NE(trouble.find("kernel.cu:40 (in cuda_fp16.hpp:7)"), std::string::npos) << trouble;
}

TEST_F(Module, ATooLargeFrameIsRefusedAndNeverWrapsAround) {
  for (const char* bytes : {"600000", "700000000"}) {
    TestProgram program(module_with("", std::string(".local .align 8 .b8 l[") + bytes +
                                            "];\nmov.u64 %rd3, l;\nst.local.u32 [l+8], %r0;"));
    Buffer<int> out(1);
    EXPECT_NE(program.trouble("k", {{1}, {1}}, out.data()), "") << bytes;
  }
}

}  // namespace
}  // namespace attest::emulator
