// Approximate instructions at the ends of the error PTX allows them, for a program that is decoded
// under NumericModel::worst. Everything else is computed as always.
#pragma once
#include "optimized/emulator/engine/isa.hpp"

namespace attest::emulator::baseline {

/// The handler that errs by a function of the launch's seed, the opcode and the operands; nullptr
/// when PTX prescribes the bits.
Handler select_worst(const Spelling& spelling);

}  // namespace attest::emulator::baseline
