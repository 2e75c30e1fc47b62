// Which loaded values only travel: every use is as what a store stores, or a mov to such a value.
// Reading memory that nobody has written is no mistake as long as nothing depends on it: so structs
// with padding are copied. Knows PTX text; the checkers know what to do with the answer.
#pragma once
#include <vector>

#include "optimized/emulator/engine/liveness.hpp"

namespace attest::emulator {

/// By register: the register that the load defined whose value it holds, or kNone.
std::vector<u32> carried_values(const ptx::Function& function, const RegisterUses& uses);

}  // namespace attest::emulator
