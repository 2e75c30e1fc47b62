// Prints the page of instructions: what opcodes.def says of each, the combinations forms.def
// defines, and what unsupported.def says of the rest. Run by the build; instructions.md is compared
// with it.
#include <cstdio>
#include <string>

#include "optimized/emulator/engine/spelling.hpp"

namespace attest::emulator {
namespace {

/// A bar would end the column.
std::string escaped(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '|') result += '\\';
    result += c;
  }
  return result;
}

void print_opcodes() {
  std::puts(
      "# Instructions\n\nMade from `opcodes.def`, `forms.def` and `unsupported.def` by "
      "`instruction_page`. exact: the bits PTX prescribes. rounded: an");
  std::puts(
      "approximation in PTX, here the correctly rounded value, or with `--numerics worst:SEED` one "
      "within PTX's error. modelled: as the tensor cores of the chosen architecture do. control: "
      "moves data or");
  std::puts(
      "control. Forms: words in the order written, (a\\|b) one of them, [a\\|b] one or none; each "
      "has "
      "rows in `instructions/`. Where there are none,");
  std::puts(
      "modifiers may be combined as PTX allows. Anything else is reported as unsupported when it "
      "is "
      "reached, with its line and what to do.\n");
  std::puts("| opcode | meaning | precision | modifiers | forms |\n|---|---|---|---|---|");
  for (unsigned o = 0; o < unsigned(Opcode::kCount); ++o) {
    const OpcodeRow& row = row_of(Opcode(o));
    std::string name(row.name), forms;
    if (name.ends_with('_')) name.pop_back();
    for (const std::string_view pattern : patterns_of(Opcode(o))) {
      if (!forms.empty()) forms += "; ";
      forms += escaped(pattern);
    }
    std::printf("| %s | %s | %.*s | %.*s | %s |\n", name.c_str(), escaped(row.meaning).c_str(),
                int(row.precision.size()), row.precision.data(), int(row.modifiers.size()),
                row.modifiers.data(), forms.c_str());
  }
}

void print_unsupported() {
  std::puts("\n## Not executed\n\n| instruction | what it is | what to do |\n|---|---|---|");
  for (const auto rows : {unsupported_opcodes(), unsupported_forms()}) {
    for (const UnsupportedRow& row : rows) {
      std::printf("| %s | %s | %s |\n", std::string(row.spelling).c_str(),
                  std::string(row.what).c_str(), std::string(row.instead).c_str());
    }
  }
}

}  // namespace
}  // namespace attest::emulator

int main() {
  attest::emulator::print_opcodes();
  attest::emulator::print_unsupported();
}
