// Prints the page of instructions: what opcodes.def says of each, and the types for which the
// handlers answer. Run by the build; instructions.md is compared with it.
#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "optimized/emulator/engine/isa.hpp"

namespace attest::emulator {
namespace {

using ptx::Type;

struct NamedType {
  const char* name;
  Type type;
};
constexpr NamedType kTypes[] = {
    {"pred", Type::pred},     {"b8", Type::b8},   {"b16", Type::b16},   {"b32", Type::b32},
    {"b64", Type::b64},       {"u8", Type::u8},   {"u16", Type::u16},   {"u32", Type::u32},
    {"u64", Type::u64},       {"s8", Type::s8},   {"s16", Type::s16},   {"s32", Type::s32},
    {"s64", Type::s64},       {"f16", Type::f16}, {"bf16", Type::bf16}, {"f16x2", Type::f16x2},
    {"bf16x2", Type::bf16x2}, {"f32", Type::f32}, {"f64", Type::f64},
};

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    words.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

/// Whether some choice of at most two of the row's modifiers gives a handler for the types.
bool exists(Opcode opcode, Type first, Type second) {
  const auto select = baseline::instruction_set().select[std::size_t(opcode)];
  std::vector<std::string_view> modifiers = words_of(row_of(opcode).modifiers);
  // Formats that stand where a type would; the column of modifiers shows them.
  std::erase_if(modifiers, [](std::string_view m) { return m.ends_with("x2") || m == "tf32"; });
  const auto answers = [&](std::vector<std::string_view> chosen) {
    ptx::Instruction i;
    i.opcode = row_of(opcode).name;
    if (i.opcode.ends_with('_')) i.opcode.pop_back();
    for (std::string_view m : chosen) i.modifiers.emplace_back(m);
    for (const NamedType& t : kTypes) {
      if (t.type == first) i.modifiers.emplace_back(t.name);
    }
    for (const NamedType& t : kTypes) {
      if (t.type == second) i.modifiers.emplace_back(t.name);
    }
    SpellingResult r = spell(i);
    r.spelling.vector = 2;  // atom and red: 64-bit addresses
    return r.problem.empty() && select(r.spelling) != nullptr;
  };
  if (answers({})) return true;
  for (std::size_t a = 0; a < modifiers.size(); ++a) {
    if (answers({modifiers[a]})) return true;
    for (std::size_t b = a + 1; b < modifiers.size(); ++b) {
      if (answers({modifiers[a], modifiers[b]})) return true;
    }
  }
  return false;
}

void append(std::string& list, std::string_view separator, std::string_view word) {
  if (!list.empty()) list += separator;
  list += word;
}

std::string types_of(Opcode opcode) {
  if (baseline::instruction_set().select[std::size_t(opcode)] == nullptr) return {};
  const OpcodeRow& row = row_of(opcode);
  const bool two =
      row.operands.find('U') != row.operands.npos || row.name == "dp4a" || row.name == "dp2a";
  // Where the opcode alone says everything, types do not matter.
  if (!two && exists(opcode, Type::none, Type::none)) return {};
  std::string text;
  for (const NamedType& first : kTypes) {
    if (!two) {
      if (exists(opcode, first.type, Type::none)) append(text, " ", first.name);
      continue;
    }
    std::string seconds;
    for (const NamedType& second : kTypes) {
      if (exists(opcode, first.type, second.type)) append(seconds, " ", second.name);
    }
    if (seconds.empty()) continue;
    append(text, "; ", first.name);
    text += " from ";
    text += seconds;
  }
  return text;
}

void print_page() {
  std::puts(
      "# Instructions\n\nMade from `opcodes.def` and the handlers by `instruction_page`. exact: "
      "the bits PTX prescribes. rounded: an");
  std::puts(
      "approximation in PTX, here the correctly rounded value. control: moves data or control. "
      "Anything else is reported as");
  std::puts(
      "unsupported when it is reached.\n\n| opcode | meaning | precision | modifiers | types "
      "|\n|---|---|---|---|---|");
  for (unsigned o = 0; o < unsigned(Opcode::kCount); ++o) {
    const OpcodeRow& row = row_of(Opcode(o));
    std::string name(row.name), meaning(row.meaning);
    if (name.ends_with('_')) name.pop_back();
    for (std::size_t at = 0; (at = meaning.find('|', at)) != meaning.npos; at += 2)
      meaning.insert(at, 1, '\\');
    std::printf("| %s | %s | %.*s | %.*s | %s |\n", name.c_str(), meaning.c_str(),
                int(row.precision.size()), row.precision.data(), int(row.modifiers.size()),
                row.modifiers.data(), types_of(Opcode(o)).c_str());
  }
}

}  // namespace
}  // namespace attest::emulator

int main() {
  attest::emulator::print_page();
}
