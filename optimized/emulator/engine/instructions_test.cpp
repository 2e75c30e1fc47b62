// Runs every row of instructions/*.txt on every instruction set of the host, alone and with all
// that looks at accesses: plainly, and under a guard that leaves out every third lane, whose
// destination must then keep what it held.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "optimized/emulator/device.hpp"
#include "optimized/emulator/engine/spelling.hpp"
#include "optimized/emulator/engine/testing/test_program.hpp"

namespace attest::emulator {
namespace {

struct Group {
  std::string spelling;
  bool written_out = false;                    // the spelling is a program of its own: "= ..."
  bool warp = false;                           // its rows are the lanes of a warp: "w= ..."
  bool looks_second = false;                   // at the second of two destinations: "~..."
  std::vector<std::vector<std::string>> rows;  // operands, then the result
};

const char* const kFiles[] = {"arithmetic",
                              "comparison",
                              "half",
                              "conversion",
                              "integer",
                              "approximate",
                              "small",
                              "warp",
                              "integer_more",
                              "memory",
                              "arithmetic_more",
                              "comparison_more",
                              "conversion_more",
                              "movement",
                              "async"};
constexpr std::uint64_t kKept = 0x5a5a5a5a5a5a5a5a;

/// The blocks that a block's first line opens: one, or one for each of several spellings.
std::vector<Group> opened_by(const std::string& line) {
  Group group;
  group.warp = line.starts_with("w= ");
  group.written_out = group.warp || line.starts_with("= ");
  if (group.written_out) {
    group.spelling = line.substr(group.warp ? 3 : 2);
    return {group};
  }
  std::vector<Group> groups;
  std::istringstream words(line);
  for (std::string word; words >> word;) {
    group.looks_second = word[0] == '~';
    group.spelling = word.substr(group.looks_second ? 1 : 0);
    groups.push_back(group);
  }
  return groups;
}

std::vector<Group> read_groups(const std::string& name) {
  std::ifstream file(std::string(ATTEST_INSTRUCTIONS) + "/" + name + ".txt");
  std::vector<Group> groups;
  std::string line;
  std::size_t open = 0;  // the last groups, which the rows belong to
  while (std::getline(file, line)) {
    if (line.starts_with("#")) continue;
    if (line.empty()) {
      open = 0;
      continue;
    }
    if (open == 0) {
      for (Group& group : opened_by(line)) groups.push_back(std::move(group)), ++open;
      continue;
    }
    std::istringstream stream(line);
    std::vector<std::string> words;
    for (std::string word; stream >> word;) words.push_back(word);
    for (std::size_t n = 0; n < open; ++n) {
      auto& row = groups[groups.size() - open + n].rows.emplace_back();
      row.assign(words.begin(), words.end() - std::ptrdiff_t(open));
      row.push_back(words[words.size() - open + n]);
    }
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

/// The instructions of a group, each under the guard.
std::string instructions_of(const Group& group, const std::string& guard) {
  if (group.written_out) {
    std::string text;
    std::istringstream statements(group.spelling);
    for (std::string one; std::getline(statements, one, ';');)
      text += guard + one.substr(std::min(one.find_first_not_of(' '), one.size())) + ";\n";
    return text;
  }
  const std::size_t bar = group.spelling.find('|');
  std::string text = guard + group.spelling.substr(0, bar);
  const bool packed = group.spelling.starts_with("setp") && group.spelling.ends_with("x2");
  text += group.looks_second ? " %p0|%d" : packed ? " %d|%p0" : " %d";
  for (std::size_t n = 0; n + 1 < group.rows[0].size(); ++n) text += fmt::format(", %i{}", n);
  if (bar != std::string::npos) text += ", " + group.spelling.substr(bar + 1);
  return text + ";\n";
}

// What a thread has in device memory: two results, and 32 bytes of its own.
constexpr std::size_t kThreadBytes = 64;

/// A kernel in which thread t executes the instruction on row t. On a real GPU it does the same.
std::string program_for(const Group& group) {
  const auto& shape = group.rows[0];
  const std::size_t inputs = shape.size() - 1;
  std::string body;
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
  }
  const std::string& result = shape.back();
  const bool predicate = is_predicate(result);
  const auto run = [&](const std::string& guard, int at) {
    std::string text;
    if (predicate) {
      text += fmt::format(
          "mov.pred %d, 0;\n{}selp.b32 %out32, 1, 0, %d;\nst.global.u32 [%to+{}], %out32;\n",
          instructions_of(group, guard), at);
    } else {
      text += fmt::format("mov.b{0} %d, {1};\n{2}st.global.b{0} [%to+{3}], %d;\n", width_of(result),
                          kKept & (width_of(result) == 64 ? ~0ull : (1ull << width_of(result)) - 1),
                          instructions_of(group, guard), at);
    }
    return text;
  };
  return fmt::format(
      ".version 9.0\n.target sm_120a\n.address_size 64\n"
      ".const .align 8 .b64 fixed[2];\n"
      ".visible .entry k(.param .u64 from, .param .u64 to)\n{{\n"
      ".shared .align 32 .b8 own[4096];\n"
      ".reg .b8 %y, %y1;\n.reg .b16 %h<3>, %h;\n.reg .b32 %q<3>, %q, %sa;\n.reg .b64 %Q<3>, %Q, "
      "%ga;\n"
      ".reg .b128 %B;\n.reg .pred %p<4>;\n"
      ".reg .b64 %in, %to, %at;\n.reg .b32 %t, %third, %out32;\n.reg .pred %g;\n.reg .{0} %d;\n"
      "ld.param.u64 %in, [from];\nld.param.u64 %to, [to];\nmov.u32 %t, %tid.x;\n"
      "mul.wide.u32 %at, %t, {1};\nadd.u64 %in, %in, %at;\nmul.wide.u32 %at, %t, {5};\nadd.u64 "
      "%to, "
      "%to, %at;\nadd.u64 %ga, %to, 32;\nmov.u32 %sa, own;\nmad.lo.u32 %sa, %t, 32, %sa;\n{2}"
      "rem.u32 %third, %t, 3;\nsetp.ne.u32 %g, %third, 0;\n{3}{4}ret;\n}}\n",
      predicate ? std::string("pred") : fmt::format("b{}", width_of(result)), 8 * inputs, body,
      run("", 0), group.warp ? "" : run("@%g ", 8), kThreadBytes);
}

void run_group(const Group& group, const std::string& way) {
  Device& device = Device::instance();
  const std::string text = program_for(group);
  const auto module = device.load(text);
  const std::size_t inputs = group.rows[0].size() - 1;
  const std::size_t count = group.rows.size();
  auto* from =
      static_cast<std::uint64_t*>(device.allocate(count * std::max<std::size_t>(inputs, 1) * 8));
  auto* to = static_cast<std::uint64_t*>(device.allocate(count * kThreadBytes));
  for (std::size_t r = 0; r < count; ++r) {
    for (std::size_t n = 0; n < inputs; ++n) from[r * inputs + n] = bits_of(group.rows[r][n]);
    std::fill_n(to + kThreadBytes / 8 * r, kThreadBytes / 8, 0);
  }
  device.mark_written(from, count * inputs * 8);
  device.mark_written(to, count * kThreadBytes);
  void* arguments[] = {&from, &to};
  const auto status = device.launch(*module, "k",
                                    {.grid = {},
                                     .block = {std::uint32_t(count)},
                                     .dynamic_shared_bytes = 0,
                                     .arguments = arguments});
  ASSERT_EQ(status, Device::Status::ok)
      << text << (device.findings().empty() ? "" : device.findings()[0].what);
  EXPECT_TRUE(device.findings().empty()) << way << text << device.findings()[0].what;
  const std::size_t width = is_predicate(group.rows[0].back()) ? 1 : width_of(group.rows[0].back());
  const std::uint64_t kept =
      is_predicate(group.rows[0].back()) ? 0 : kKept & (width == 64 ? ~0ull : (1ull << width) - 1);
  for (std::size_t r = 0; r < count; ++r) {
    const std::uint64_t wanted = bits_of(group.rows[r].back());
    const std::uint64_t* got = to + kThreadBytes / 8 * r;
    EXPECT_EQ(fmt::format("{:x}", got[0]), fmt::format("{:x}", wanted))
        << way << ": " << group.spelling << " " << fmt::format("{}", fmt::join(group.rows[r], " "));
    if (group.warp) continue;  // it would wait for the lanes left out
    EXPECT_EQ(fmt::format("{:x}", got[1]), fmt::format("{:x}", r % 3 ? wanted : kept))
        << way << ", guarded: " << group.spelling << " "
        << fmt::format("{}", fmt::join(group.rows[r], " "));
  }
  device.release(from);
  device.release(to);
}

class EveryWay : public testing::TestWithParam<std::tuple<Way, const char*>> {};

TEST_P(EveryWay, GivesTheBitsOfTheTable) {
  const auto& [way, file] = GetParam();
  choose(way);
  const std::vector<Group> groups = read_groups(file);
  ASSERT_FALSE(groups.empty()) << file;
  for (const Group& group : groups) {
    run_group(group, print(way));
    Device::instance().reset_findings();
  }
}
INSTANTIATE_TEST_SUITE_P(
    All, EveryWay, testing::Combine(testing::ValuesIn(every_way()), testing::ValuesIn(kFiles)),
    [](const auto& i) { return print(std::get<0>(i.param)) + "_" + std::get<1>(i.param); });

/// The instructions a group executes, as opcode and words.
std::vector<std::string> spellings_of(const Group& group) {
  if (!group.written_out) return {group.spelling.substr(0, group.spelling.find('|'))};
  std::vector<std::string> spellings;
  std::istringstream statements(group.spelling);
  for (std::string one; std::getline(statements, one, ';');) {
    std::istringstream words(one);
    std::string word;
    if (words >> word) spellings.push_back(word);
  }
  return spellings;
}

Spelling spelling_of(const std::string& text) {
  ptx::Instruction instruction;
  std::istringstream words(text);
  std::getline(words, instruction.opcode, '.');
  for (std::string word; std::getline(words, word, '.');) instruction.modifiers.push_back(word);
  const SpellingResult result = spell(instruction);
  EXPECT_EQ(result.problem, "") << text;
  return result.spelling;
}

// The decoder accepts what forms.def defines and nothing else: so every combination there is has a
// row, or this names it.
TEST(Tables, HaveEveryCombinationThatPtxDefines) {
  std::set<std::pair<Opcode, std::array<std::uint64_t, 5>>> tested;
  for (const char* file : kFiles) {
    for (const Group& group : read_groups(file)) {
      for (const std::string& text : spellings_of(group)) {
        const Spelling spelling = spelling_of(text);
        tested.emplace(spelling.opcode, combination_of(spelling));
      }
    }
  }
  std::size_t combinations = 0;
  for (unsigned o = 0; o < unsigned(Opcode::kCount); ++o) {
    std::string name(row_of(Opcode(o)).name);
    if (name.ends_with('_')) name.pop_back();
    for (const std::string& form : forms_of(Opcode(o))) {
      ++combinations;
      const Spelling spelling = spelling_of(name + "." + form);
      EXPECT_TRUE(is_defined(spelling)) << name << "." << form;
      EXPECT_TRUE(tested.contains({Opcode(o), combination_of(spelling)}))
          << name << "." << form << " has no row in instructions/*.txt";
    }
  }
  EXPECT_GT(combinations, 5000u);
}

TEST(Tables, HaveEveryOpcodeThatComputes) {
  for (unsigned o = 0; o < unsigned(Opcode::kCount); ++o) {
    const OpcodeRow& row = row_of(Opcode(o));
    if (row.precision == "control" || row.precision == "modelled") continue;
    EXPECT_FALSE(forms_of(Opcode(o)).empty())
        << row.name << " computes something, but forms.def does not say in which forms";
  }
}

}  // namespace
}  // namespace attest::emulator
