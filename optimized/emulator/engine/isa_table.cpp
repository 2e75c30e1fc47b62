// The table of handlers of one instruction set of the host, made from opcodes.def.
#include "optimized/emulator/engine/select.hpp"

namespace attest::emulator::ATTEST_ISA {

#define ATTEST_NAME_OF(isa) #isa
#define ATTEST_NAME(isa) ATTEST_NAME_OF(isa)
#define ATTEST_POINTER_each(name) &select_##name,
#define ATTEST_POINTER_once(name) &baseline::select_##name,
#define ATTEST_POINTER_decoder(name) nullptr,

const InstructionSet& instruction_set() {
  static const InstructionSet set = [] {
    InstructionSet s{ATTEST_NAME(ATTEST_ISA),
                     {
#define OPCODE(name, where, operands, modifiers, precision, meaning) ATTEST_POINTER_##where(name)
#include "optimized/emulator/engine/opcodes.def"
                     },
                     {},
                     &select_load,
                     &select_store,
                     &run};
    for (unsigned i = 0; i < unsigned(Plain::kCount); ++i) s.plain[i] = kPlain[i];
    return s;
  }();
  return set;
}

}  // namespace attest::emulator::ATTEST_ISA
