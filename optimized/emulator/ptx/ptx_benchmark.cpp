// How long reading PTX takes, per thousand instructions, on the text of probe.cu.
#include <benchmark/benchmark.h>

#include <fstream>
#include <iterator>

#include "optimized/emulator/ptx/module.hpp"

namespace {

void parse_probe(benchmark::State& state, const char* path) {
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::size_t instructions = 0;
  for (auto _ : state) {
    const auto module = attest::emulator::ptx::parse(text);
    for (const auto& function : module.functions) instructions += function.body.size();
  }
  state.counters["ms_per_1000"] =
      benchmark::Counter(static_cast<double>(instructions) * 1e-6,
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  state.SetBytesProcessed(static_cast<std::int64_t>(state.iterations() * text.size()));
}
BENCHMARK_CAPTURE(parse_probe, lineinfo, ATTEST_PROBE_PTX);
BENCHMARK_CAPTURE(parse_probe, debug, ATTEST_PROBE_DEBUG_PTX);

}  // namespace
