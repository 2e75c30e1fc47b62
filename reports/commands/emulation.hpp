// How the emulator shall run, from the words of a command line.
#pragma once
#include "optimized/emulator/options.hpp"
#include "reports/commands/commands.hpp"

namespace attest {

/// Nothing may be left to draw. Throws Error naming the option, the word that is wrong and the
/// nearest right one.
emulator::DeviceOptions chosen(const EmulationOptions& options);
/// The same with every word spelled as the emulator prints it: `all` names the checkers, `worst:3`
/// the architecture it drew. What is drawn per case stays so.
EmulationOptions spelled(const EmulationOptions& options);

}  // namespace attest
