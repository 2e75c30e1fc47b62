// The speed of matrix instructions: bf16 flash attention with ldmatrix and mma (programs/
// mma_flash.cu), S = 1024, d = 64, one head, under each tensor model, with no checker, memcheck and
// all of them; the same with its tiles copied asynchronously; and one mma by itself, of ordinary
// operands and of huge ones. Processor time of this thread. Counters: attention GFLOP/s
// (4 S^2 d per pass), nanoseconds per warp instruction or mma, ratio to the same loops compiled for
// the host, bytes of registers per warp.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "optimized/emulator/engine/testing/drawn_values.hpp"
#include "optimized/emulator/engine/testing/processor_time.hpp"
#include "optimized/emulator/engine/testing/test_program.hpp"

namespace attest::emulator {
namespace {

constexpr int kSequence = 1024, kDepth = 64;
constexpr double kFlops = 4.0 * kSequence * kSequence * kDepth;

std::uint16_t to_bf16(float x) {
  return std::uint16_t(std::bit_cast<std::uint32_t>(x) >> 16);
}
float from_bf16(std::uint16_t x) {
  return std::bit_cast<float>(std::uint32_t(x) << 16);
}

/// bf16 values in [-1, 1).
std::vector<std::uint16_t> values(unsigned seed) {
  std::vector<std::uint16_t> x;
  for (const float f : drawn_values(seed, std::size_t(kSequence) * kDepth)) x.push_back(to_bf16(f));
  return x;
}

/// The same tiles in f32 on the host: 64 queries against 64 keys at a time.
void native_flash(const std::vector<float>& q, const std::vector<float>& k,
                  const std::vector<float>& v, std::vector<float>& o, float bits_per_unit) {
  constexpr int kTile = 64;
  for (int row = 0; row < kSequence; ++row) {
    float acc[kDepth] = {}, largest = -INFINITY, total = 0;
    for (int first = 0; first < kSequence; first += kTile) {
      float s[kTile];
      float fresh = largest;
      for (int j = 0; j < kTile; ++j) {
        float sum = 0;
        for (int c = 0; c < kDepth; ++c)
          sum += q[std::size_t(row * kDepth + c)] * k[std::size_t((first + j) * kDepth + c)];
        s[j] = sum;
        fresh = std::max(fresh, sum);
      }
      const float rescale = std::exp2((largest - fresh) * bits_per_unit);
      largest = fresh, total *= rescale;
      for (float& a : acc) a *= rescale;
      for (int j = 0; j < kTile; ++j) {
        const float p = std::exp2((s[j] - largest) * bits_per_unit);
        total += p;
        for (int c = 0; c < kDepth; ++c) acc[c] += p * v[std::size_t((first + j) * kDepth + c)];
      }
    }
    for (int c = 0; c < kDepth; ++c) o[std::size_t(row * kDepth + c)] = acc[c] / total;
  }
}

const char* const kModels[] = {"f32",   "sm_70", "sm_75",  "sm_80",
                               "sm_89", "sm_90", "sm_100", "sm_120"};
const char* const kChecks[] = {"none", "memcheck", "memcheck,initcheck,racecheck"};

double native_seconds = 0;
constexpr float kBitsPerUnit = 0.125f * 1.44269504f;  // 1 / sqrt(64), log2(e)

TestProgram& program() {
  static TestProgram p(text_of(ATTEST_MMA_FLASH_PTX));
  return p;
}

void configure(std::int64_t model, std::int64_t checks) {
  std::string problem;
  DeviceOptions options;
  options.numerics = *parse_numerics(kModels[model], problem);
  options.checks = *parse_checks(kChecks[checks], problem);
  Device::instance().reset_findings();
  Device::instance().configure(options);
}

/// Of a warp, after registers share slots: 32 lanes of 4 bytes each.
double register_bytes(const char* kernel) {
  return 128.0 * Device::instance().facts(program().module(), kernel).registers_estimate;
}

void native(benchmark::State& state) {
  std::vector<float> x[3], o(std::size_t(kSequence) * kDepth);
  for (unsigned i = 0; i < 3; ++i) {
    for (const std::uint16_t h : values(i)) x[i].push_back(from_bf16(h));
  }
  double seconds = 0;
  for (auto _ : state) {
    const double start = cpu_seconds();
    native_flash(x[0], x[1], x[2], o, kBitsPerUnit);
    benchmark::ClobberMemory();
    seconds += cpu_seconds() - start;
  }
  native_seconds = seconds / double(state.iterations());
  state.counters["GFLOP/s"] = kFlops / native_seconds * 1e-9;
}

void run_flash(benchmark::State& state, const char* kernel) {
  configure(state.range(0), state.range(1));
  state.SetLabel(std::string(kModels[state.range(0)]) + ", " + kChecks[state.range(1)]);
  Device& device = Device::instance();
  Buffer<std::uint16_t> q(std::size_t(kSequence) * kDepth), k(q.size()), v(q.size());
  Buffer<float> o(q.size());
  for (auto [to, seed] : {std::pair{&q, 0u}, {&k, 1u}, {&v, 2u}}) {
    const std::vector<std::uint16_t> from = values(seed);
    std::copy(from.begin(), from.end(), to->begin());
  }
  const std::uint64_t before = device.counts().warp_instructions;
  double seconds = 0;
  for (auto _ : state) {
    const double start = cpu_seconds();
    const std::string trouble =
        program().trouble(kernel, {.grid = {kSequence / 64}, .block = {128}}, q.data(), k.data(),
                          v.data(), o.data(), kSequence, kSequence, kBitsPerUnit);
    seconds += cpu_seconds() - start;
    if (!trouble.empty()) return state.SkipWithError(trouble.c_str());
    if (!device.findings().empty()) return state.SkipWithError(device.findings()[0].what.c_str());
  }
  const double passes = double(state.iterations());
  state.counters["GFLOP/s"] = kFlops * passes / seconds * 1e-9;
  state.counters["ns_per_instruction"] =
      seconds * 1e9 / double(device.counts().warp_instructions - before);
  if (native_seconds > 0) state.counters["times_native"] = seconds / passes / native_seconds;
  state.counters["register_bytes"] = register_bytes(kernel);
}

void flash(benchmark::State& state) {
  run_flash(state, "mma_flash");
}
void flash_async(benchmark::State& state) {
  run_flash(state, "mma_flash_async");
}

void mma(benchmark::State& state) {
  configure(state.range(0), 0);
  state.SetLabel(kModels[state.range(0)]);
  Buffer<std::uint32_t> in(6 * 32);
  Buffer<float> o(32 * 32);
  unsigned seed = 7;
  for (std::uint32_t& word : in) {
    seed = seed * 1664525u + 1013904223u;
    const float x = float(seed >> 8) / float(1 << 24) - 0.5f;
    word = to_bf16(state.range(1) != 0 ? x * 0x1p62f : x) * 0x10001u;
  }
  const int rounds = state.range(1) != 0 ? 20 : 2000;
  double seconds = 0;
  for (auto _ : state) {
    const double start = cpu_seconds();
    const std::string trouble =
        program().trouble("mma_only", {.grid = {1}, .block = {32}}, in.data(), o.data(), rounds);
    seconds += cpu_seconds() - start;
    if (!trouble.empty()) return state.SkipWithError(trouble.c_str());
  }
  state.counters["ns_per_mma"] = seconds * 1e9 / (8.0 * rounds * double(state.iterations()));
}

BENCHMARK(native)->Unit(benchmark::kMillisecond);
BENCHMARK(flash)
    ->ArgNames({"model", "checks"})
    ->ArgsProduct({{0, 3, 5}, {0, 1, 2}})
    ->Unit(benchmark::kMillisecond);
BENCHMARK(flash_async)
    ->ArgNames({"model", "checks"})
    ->ArgsProduct({{0}, {0, 1, 2}})
    ->Unit(benchmark::kMillisecond);
// Huge operands leave the range of the vectorised sums: the definition computes them.
BENCHMARK(mma)
    ->ArgNames({"model", "huge"})
    ->ArgsProduct({{0, 3, 5}, {0, 1}})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace attest::emulator
