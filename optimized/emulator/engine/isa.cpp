// Chooses the instruction set the handlers run with.
#include "optimized/emulator/engine/isa.hpp"

#include <cstdlib>
#include <string_view>

namespace attest::emulator {

const InstructionSet& choose_instruction_set() {
  __builtin_cpu_init();
  const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool has_avx512 = has_avx2 && __builtin_cpu_supports("avx512f") &&
                          __builtin_cpu_supports("avx512dq") &&
                          __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl");
  const char* variable = std::getenv("ATTEST_ISA");
  const std::string_view wish = variable ? variable : "";
  if (wish == "baseline" || !has_avx2) return baseline::instruction_set();
  if (wish == "avx2" || !has_avx512) return avx2::instruction_set();
  return avx512::instruction_set();
}

}  // namespace attest::emulator
