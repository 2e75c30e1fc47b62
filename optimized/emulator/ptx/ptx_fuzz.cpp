// Any bytes are PTX or a SyntaxError: no crash, no hang, no other exception.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "optimized/emulator/ptx/module.hpp"

using namespace attest::emulator::ptx;

namespace {

/// Reads what a consumer would, so that a sanitizer sees an index that leads nowhere.
void check(const Module& module, const Function& function, const Operand& operand) {
  if (operand.reg != kNoRegister && operand.reg >= function.registers.size()) __builtin_trap();
  if (operand.second != kNoRegister && operand.second >= function.registers.size()) {
    __builtin_trap();
  }
  if (operand.kind == Operand::Kind::reg && operand.reg == kNoRegister) __builtin_trap();
  if (operand.kind == Operand::Kind::label &&
      static_cast<std::uint64_t>(operand.immediate) >= function.body.size()) {
    __builtin_trap();
  }
  for (const Operand& element : operand.elements) check(module, function, element);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const Module module = parse({reinterpret_cast<const char*>(data), size});
    for (const Function& function : module.functions) {
      for (const Instruction& instruction : function.body) {
        if (instruction.source.file >= module.files.size()) __builtin_trap();
        for (const Operand& operand : instruction.operands) check(module, function, operand);
      }
    }
    for (const Variable& variable : module.variables) {
      if (!variable.initial.empty() && variable.initial.size() != variable.bytes) __builtin_trap();
      for (const Variable::Patch& patch : variable.patches) {
        if (patch.offset + patch.bytes > variable.bytes) __builtin_trap();
      }
    }
  } catch (const SyntaxError&) {
  }
  return 0;
}
