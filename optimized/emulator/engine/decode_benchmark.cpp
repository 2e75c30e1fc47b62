// What it costs to read PTX and to decode its kernels: milliseconds of processor time per thousand
// instructions, and the bytes of registers a warp needs once slots are shared.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>

#include "optimized/emulator/engine/code.hpp"
#include "optimized/emulator/engine/testing/processor_time.hpp"

namespace attest::emulator {
namespace {

void read_and_decode(benchmark::State& state, const char* path) {
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const InstructionSet& isa = choose_instruction_set();
  double parsing = 0, decoding = 0, parsed = 0, decoded = 0;
  std::size_t most = 0;
  for (auto _ : state) {
    const double start = cpu_seconds();
    LoadedModuleState module;
    module.module = ptx::parse(text);
    parsing += cpu_seconds() - start;
    for (u32 i = 0; i < module.module.functions.size(); ++i)
      module.functions[module.module.functions[i].name] = i;
    for (const ptx::Function& f : module.module.functions) parsed += double(f.body.size());
    const double middle = cpu_seconds();
    for (u32 i = 0; i < module.module.functions.size(); ++i) {
      if (!module.module.functions[i].entry) continue;
      const auto program = build_program(module, i, isa, false);
      decoded += double(module.module.functions[i].body.size());
      const Code& code = *program->entry;
      most = std::max<std::size_t>(most, code.narrow_slots * std::size_t{kLanes} * 4 +
                                             code.wide_slots * std::size_t{kLanes} * 8 +
                                             code.predicate_slots * std::size_t{4});
    }
    decoding += cpu_seconds() - middle;
  }
  state.counters["parse_ms_per_1000"] = parsing / parsed * 1e6;
  state.counters["decode_ms_per_1000"] = decoding / decoded * 1e6;
  state.counters["register_bytes_per_warp"] = double(most);
}
BENCHMARK_CAPTURE(read_and_decode, flash, ATTEST_FLASH_PTX)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(read_and_decode, programs, ATTEST_PROGRAMS_PTX)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace attest::emulator
