// Runs every row of instructions/*.txt on every instruction set of the host: plainly, and under a
// guard that leaves out every third lane, whose destination must then keep what it held.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "optimized/emulator/device.hpp"
#include "optimized/emulator/engine/spelling.hpp"

namespace attest::emulator {
namespace {

struct Group {
  std::string spelling;
  std::vector<std::vector<std::string>> rows;  // operands, then the result
};

const char* const kFiles[] = {"arithmetic", "comparison",  "half", "conversion",
                              "integer",    "approximate", "small"};
constexpr std::uint64_t kKept = 0x5a5a5a5a5a5a5a5a;

std::vector<Group> read_groups(const std::string& name) {
  std::ifstream file(std::string(ATTEST_INSTRUCTIONS) + "/" + name + ".txt");
  std::vector<Group> groups;
  std::string line;
  bool fresh = true;
  while (std::getline(file, line)) {
    if (line.starts_with("#")) continue;
    if (line.empty()) {
      fresh = true;
      continue;
    }
    if (fresh) {
      groups.push_back({line, {}});
      fresh = false;
      continue;
    }
    std::istringstream words(line);
    auto& row = groups.back().rows.emplace_back();
    for (std::string word; words >> word;) row.push_back(word);
  }
  return groups;
}

std::uint64_t bits_of(const std::string& word) {
  return word[0] == 'p' ? std::uint64_t(word[1] - '0') : std::stoull(word, nullptr, 16);
}
bool is_predicate(const std::string& word) {
  return word[0] == 'p';
}
std::size_t width_of(const std::string& word) {
  return word.size() * 4;
}

/// A kernel in which thread t executes the instruction on row t. On a real GPU it does the same.
std::string program_for(const Group& group) {
  const auto& shape = group.rows[0];
  const std::size_t inputs = shape.size() - 1;
  const std::size_t bar = group.spelling.find('|');
  const std::string spelling = group.spelling.substr(0, bar);
  std::string body, names;
  for (std::size_t n = 0; n < inputs; ++n) {
    if (is_predicate(shape[n])) {
      body += fmt::format(
          ".reg .pred %i{0};\n.reg .b32 %w{0};\nld.global.u32 %w{0}, [%in+{1}];\nsetp.ne.u32 "
          "%i{0}, %w{0}, 0;\n",
          n, 8 * n);
    } else {
      body += fmt::format(".reg .b{1} %i{0};\nld.global.b{1} %i{0}, [%in+{2}];\n", n,
                          width_of(shape[n]), 8 * n);
    }
    names += fmt::format(", %i{}", n);
  }
  if (bar != std::string::npos) names += ", " + group.spelling.substr(bar + 1);
  const std::string& result = shape.back();
  const bool predicate = is_predicate(result);
  const std::string instruction = fmt::format("{} %d{};\n", spelling, names);
  const auto run = [&](const std::string& guard, int at) {
    std::string text;
    if (predicate) {
      text += fmt::format(
          "mov.pred %d, 0;\n{}{}selp.b32 %out32, 1, 0, %d;\nst.global.u32 [%to+{}], %out32;\n",
          guard, instruction, at);
    } else {
      text +=
          fmt::format("mov.b{0} %d, {1};\n{2}{3}st.global.b{0} [%to+{4}], %d;\n", width_of(result),
                      kKept & (width_of(result) == 64 ? ~0ull : (1ull << width_of(result)) - 1),
                      guard, instruction, at);
    }
    return text;
  };
  return fmt::format(
      ".version 8.7\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 from, .param "
      ".u64 to)\n{{\n"
      ".reg .b64 %in, %to, %at;\n.reg .b32 %t, %third, %out32;\n.reg .pred %g;\n.reg .{0} %d;\n"
      "ld.param.u64 %in, [from];\nld.param.u64 %to, [to];\nmov.u32 %t, %tid.x;\n"
      "mul.wide.u32 %at, %t, {1};\nadd.u64 %in, %in, %at;\nmul.wide.u32 %at, %t, 16;\nadd.u64 %to, "
      "%to, %at;\n{2}"
      "rem.u32 %third, %t, 3;\nsetp.ne.u32 %g, %third, 0;\n{3}{4}ret;\n}}\n",
      predicate ? std::string("pred") : fmt::format("b{}", width_of(result)), 8 * inputs, body,
      run("", 0), run("@%g ", 8));
}

void run_group(const Group& group, const std::string& isa) {
  Device& device = Device::instance();
  const std::string text = program_for(group);
  const auto module = device.load(text);
  const std::size_t inputs = group.rows[0].size() - 1;
  const std::size_t count = group.rows.size();
  auto* from =
      static_cast<std::uint64_t*>(device.allocate(count * std::max<std::size_t>(inputs, 1) * 8));
  auto* to = static_cast<std::uint64_t*>(device.allocate(count * 16));
  for (std::size_t r = 0; r < count; ++r) {
    for (std::size_t n = 0; n < inputs; ++n) from[r * inputs + n] = bits_of(group.rows[r][n]);
    to[2 * r] = to[2 * r + 1] = 0;
  }
  void* arguments[] = {&from, &to};
  const auto status = device.launch(*module, "k",
                                    {.grid = {},
                                     .block = {std::uint32_t(count)},
                                     .dynamic_shared_bytes = 0,
                                     .arguments = arguments});
  ASSERT_EQ(status, Device::Status::ok)
      << text << (device.findings().empty() ? "" : device.findings()[0].what);
  const std::size_t width = is_predicate(group.rows[0].back()) ? 1 : width_of(group.rows[0].back());
  const std::uint64_t kept =
      is_predicate(group.rows[0].back()) ? 0 : kKept & (width == 64 ? ~0ull : (1ull << width) - 1);
  for (std::size_t r = 0; r < count; ++r) {
    const std::uint64_t wanted = bits_of(group.rows[r].back());
    EXPECT_EQ(fmt::format("{:x}", to[2 * r]), fmt::format("{:x}", wanted))
        << isa << ": " << group.spelling << " " << fmt::format("{}", fmt::join(group.rows[r], " "));
    EXPECT_EQ(fmt::format("{:x}", to[2 * r + 1]), fmt::format("{:x}", r % 3 ? wanted : kept))
        << isa << ", guarded: " << group.spelling << " "
        << fmt::format("{}", fmt::join(group.rows[r], " "));
  }
  device.release(from);
  device.release(to);
}

class EveryInstructionSet : public testing::TestWithParam<std::tuple<const char*, const char*>> {};

TEST_P(EveryInstructionSet, GivesTheBitsOfTheTable) {
  const auto& [isa, file] = GetParam();
  setenv("ATTEST_ISA", isa, 1);
  Device::instance().configure({});
  const std::vector<Group> groups = read_groups(file);
  ASSERT_FALSE(groups.empty()) << file;
  for (const Group& group : groups) {
    run_group(group, isa);
    Device::instance().reset_findings();
  }
}
INSTANTIATE_TEST_SUITE_P(All, EveryInstructionSet,
                         testing::Combine(testing::Values("baseline", "avx2", "avx512"),
                                          testing::ValuesIn(kFiles)),
                         [](const auto& i) {
                           return std::string(std::get<0>(i.param)) + "_" + std::get<1>(i.param);
                         });

TEST(Tables, HaveEveryOpcodeThatComputes) {
  std::set<std::string, std::less<>> tested;
  for (const char* file : kFiles) {
    for (const Group& group : read_groups(file))
      tested.insert(group.spelling.substr(0, group.spelling.find_first_of(".|")));
  }
  // These need several lanes, memory or the carry of a neighbour: execution_test.cpp has them.
  for (const char* elsewhere : {"addc", "subc", "atom", "red", "redux"}) tested.insert(elsewhere);
  for (unsigned o = 0; o < unsigned(Opcode::kCount); ++o) {
    const OpcodeRow& row = row_of(Opcode(o));
    std::string name(row.name);
    if (name.ends_with('_')) name.pop_back();
    if (row.precision == "control") continue;
    EXPECT_TRUE(tested.contains(name))
        << name << " computes something, but no table has a row for it";
  }
}

}  // namespace
}  // namespace attest::emulator
