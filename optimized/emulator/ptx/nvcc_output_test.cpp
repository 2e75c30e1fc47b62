// Whole texts of the nvcc at hand (probe.cu, with -lineinfo and with -G): everything is read, and
// the facts that the emulator lives on are right.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "optimized/emulator/ptx/module.hpp"

namespace attest::emulator::ptx {
namespace {

std::string text_of(const std::string& path) {
  std::ifstream file(path);
  EXPECT_TRUE(file) << path;
  return {std::istreambuf_iterator<char>(file), {}};
}
const Function& kernel(const Module& module, std::string_view part) {
  for (const Function& function : module.functions) {
    if (function.entry && function.name.find(part) != std::string::npos) return function;
  }
  throw std::runtime_error("no kernel " + std::string(part));
}
/// The line of probe.cu that contains `words`.
std::uint32_t line_with(const std::string& words) {
  std::ifstream file(ATTEST_PROBE_SOURCE);
  std::string line;
  for (std::uint32_t number = 1; std::getline(file, line); ++number) {
    if (line.find(words) != std::string::npos) return number;
  }
  return 0;
}

class NvccOutput : public testing::TestWithParam<const char*> {};

TEST_P(NvccOutput, IsReadWhole) {
  const std::string text = text_of(GetParam());
  const Module module = parse(text);
  EXPECT_EQ(module.target, "sm_80");
  const Function& f = kernel(module, "everythingIf");
  EXPECT_EQ(f.maxntid, (std::array<std::uint32_t, 3>{128, 1, 1}));
  ASSERT_EQ(f.parameters.size(), 3U);
  EXPECT_EQ(f.parameters[0].bytes, 32U);
  EXPECT_EQ(f.parameters[0].alignment, 8U);
  EXPECT_EQ(f.parameters[2].bytes, 4U);
  for (const Function& function : module.functions) {
    if (function.declared_only) continue;
    ASSERT_FALSE(function.body.empty());
    EXPECT_TRUE(std::is_sorted(function.leaders.begin(), function.leaders.end()));
    for (const Instruction& instruction : function.body) {
      for (const Operand& operand : instruction.operands) {
        if (operand.kind != Operand::Kind::label) continue;
        const auto target = static_cast<std::uint32_t>(operand.immediate);
        EXPECT_LT(target, function.body.size());
        EXPECT_TRUE(std::binary_search(function.leaders.begin(), function.leaders.end(), target));
      }
    }
  }
  for (const char* declared : {"vprintf", "__assertfail", "malloc"}) {
    ASSERT_NE(module.find(declared), nullptr) << declared;
    EXPECT_TRUE(module.find(declared)->declared_only);
  }
}

TEST_P(NvccOutput, KnowsTheSource) {
  const Module module = parse(text_of(GetParam()));
  const Function& f = kernel(module, "everythingIf");
  const std::uint32_t store = line_with("fixed[i & 63] = dynamic[i];");
  bool found_store = false, found_inlined = false;
  for (const Instruction& instruction : f.body) {
    ASSERT_LT(instruction.source.file, module.files.size());
    const bool here = module.files[instruction.source.file].ends_with("probe.cu");
    found_store |= here && instruction.opcode == "st" && instruction.source.line == store;
    found_inlined |= here && instruction.source.line == line_with("line of inlined_sum");
  }
  EXPECT_TRUE(found_store);
  EXPECT_TRUE(found_inlined);
}

TEST_P(NvccOutput, HoldsVariables) {
  const Module module = parse(text_of(GetParam()));
  const auto find = [&](std::string_view name) {
    const auto found = std::find_if(module.variables.begin(), module.variables.end(),
                                    [&](const Variable& each) { return each.name == name; });
    EXPECT_NE(found, module.variables.end()) << name;
    return *found;
  };
  EXPECT_EQ(static_cast<int>(find("counter").initial.at(12)), 4);
  EXPECT_EQ(find("table").space, Space::constant);
  EXPECT_EQ(find("chosen").patches.at(0).target.name, "_Z5timesILi3EEffi");
  EXPECT_TRUE(find("dynamic").external);
}

INSTANTIATE_TEST_SUITE_P(LineInfoAndDebug, NvccOutput,
                         testing::Values(ATTEST_PROBE_PTX, ATTEST_PROBE_DEBUG_PTX));

TEST(NvccTensorOutput, KeepsModifiersAndVectors) {
  const Module module = parse(text_of(ATTEST_PROBE_PTX));
  const Function& f = kernel(module, "tensor_operations");
  const auto mma = std::find_if(f.body.begin(), f.body.end(),
                                [](const Instruction& each) { return each.opcode == "mma"; });
  ASSERT_NE(mma, f.body.end());
  EXPECT_EQ(mma->modifiers.size(), 9U);
  ASSERT_EQ(mma->operands.size(), 4U);
  EXPECT_EQ(mma->operands[1].elements.size(), 4U);
  EXPECT_EQ(mma->operands[2].elements.size(), 2U);
  const auto copy = std::find_if(f.body.begin(), f.body.end(),
                                 [](const Instruction& each) { return each.opcode == "cp"; });
  ASSERT_NE(copy, f.body.end());
  EXPECT_EQ(copy->modifiers.back(), "L2::128B");
}

}  // namespace
}  // namespace attest::emulator::ptx
