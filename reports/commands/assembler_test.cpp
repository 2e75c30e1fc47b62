// What ptxas prints is read, and our own kernels keep everything in registers.
#include "reports/commands/assembler.hpp"

#include <gtest/gtest.h>

#include "reference/text.hpp"
#include "reports/commands/subjects.hpp"

namespace attest {
namespace {

TEST(Assembler, ReadsWhatPtxasPrints) {
  const Resources read = read_resources(
      "ptxas info    : 0 bytes gmem\n"
      "ptxas info    : Compiling entry function '_Z1fPf' for 'sm_90'\n"
      "ptxas info    : Function properties for _Z1fPf\n"
      "    24 bytes stack frame, 12 bytes spill stores, 16 bytes spill loads\n"
      "ptxas info    : Used 71 registers, used 1 barriers, 32768 bytes smem, 504 bytes cmem[0]\n"
      "ptxas info    : Compiling entry function '_Z1gv' for 'sm_90'\n"
      "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
      "ptxas info    : Used 8 registers\n");
  ASSERT_EQ(read.size(), 2U);
  const KernelResources f{
      .registers = 71, .stack_bytes = 24, .spill_bytes = 28, .static_shared_bytes = 32768};
  EXPECT_EQ(read.at("_Z1fPf"), f);
  EXPECT_EQ(read.at("_Z1gv"), KernelResources{.registers = 8});
  EXPECT_TRUE(read_resources("").empty());
}

TEST(Assembler, AProgramThatSaysNothingOfKernelsIsNoAssembler) {
  try {
    assemble("/bin/true", plugin_named("ours"), 90);
    FAIL() << "registers would be unknown, and nobody would know why";
  } catch (const Error& error) {
    const std::string what = error.what();
    EXPECT_NE(what.find("/bin/true names none of the kernels"), std::string::npos) << what;
    EXPECT_NE(what.find("It said: nothing"), std::string::npos) << what;
  }
}

TEST(Assembler, OurKernelsSpillNothing) {
  const auto ptxas = assembler();
  ASSERT_TRUE(ptxas) << "there is an nvcc, so there is a ptxas";
  for (const int architecture : {80, 90}) {
    const Resources kernels = assemble(*ptxas, plugin_named("ours"), architecture);
    EXPECT_GT(kernels.size(), 10U);
    for (const auto& [name, kernel] : kernels) {
      EXPECT_EQ(kernel.spill_bytes, 0) << name << " on sm_" << architecture;
      EXPECT_GT(kernel.registers, 0) << name;
    }
  }
}

}  // namespace
}  // namespace attest
