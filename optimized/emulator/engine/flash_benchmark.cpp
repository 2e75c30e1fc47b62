// The speed that the emulator is judged by: our own f32 flash attention kernel, S = 1024, d = 64,
// one head, with none, one, two and all of the checkers, beside the same loop nest compiled for the
// host in the same run. Counters: attention GFLOP/s (4 S^2 d per pass) and nanoseconds per warp
// instruction.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "optimized/emulator/device.hpp"
#include "optimized/emulator/engine/testing/drawn_values.hpp"
#include "optimized/emulator/engine/testing/flash_setup.hpp"
#include "optimized/emulator/engine/testing/processor_time.hpp"

namespace attest::emulator {
namespace {

constexpr int kSequence = 1024, kDepth = kFlashDepth;
constexpr double kFlops = 4.0 * kSequence * kSequence * kDepth;
double native_seconds = 0;

/// One head of flash attention as the kernel does it, in tiles of 32 keys, one row after another.
void native_flash(const float* q, const float* k, const float* v, float* o) {
  constexpr int kTile = 32;
  const float scale = 1.0f / std::sqrt(float(kDepth));
  for (int row = 0; row < kSequence; ++row) {
    float acc[kDepth] = {}, m = -INFINITY, l = 0;
    for (int j0 = 0; j0 < kSequence; j0 += kTile) {
      float s[kTile];
      float largest = m;
      for (int j = 0; j < kTile; ++j) {
        float sum = 0;
        for (int c = 0; c < kDepth; ++c) sum += q[row * kDepth + c] * k[(j0 + j) * kDepth + c];
        s[j] = sum * scale;
        largest = std::max(largest, s[j]);
      }
      const float rescale = std::exp(m - largest);
      m = largest;
      l *= rescale;
      for (float& a : acc) a *= rescale;
      for (int j = 0; j < kTile; ++j) {
        const float p = std::exp(s[j] - m);
        l += p;
        for (int c = 0; c < kDepth; ++c) acc[c] += p * v[(j0 + j) * kDepth + c];
      }
    }
    for (int c = 0; c < kDepth; ++c) o[row * kDepth + c] = acc[c] / l;
  }
}

std::vector<float> values(unsigned seed) {
  return drawn_values(seed, std::size_t(kSequence) * kDepth);
}

struct Setup {
  std::vector<float> q = values(1), k = values(2), v = values(3);
  std::vector<float> native = std::vector<float>(q.size());
  std::shared_ptr<LoadedModule> module;
  std::string kernel;
  float *dq, *dk, *dv, *o, *lse;

  Setup() {
    std::ifstream file(ATTEST_FLASH_PTX);
    std::stringstream text;
    text << file.rdbuf();
    Device& device = Device::instance();
    module = device.load(text.str());
    kernel = flash_kernel(text.str());
    const auto place = [&](const std::vector<float>& from) {
      auto* to = static_cast<float*>(device.allocate(from.size() * sizeof(float)));
      std::copy(from.begin(), from.end(), to);
      device.mark_written(to, from.size() * sizeof(float));
      return to;
    };
    dq = place(q), dk = place(k), dv = place(v), o = place(q);
    lse = static_cast<float*>(device.allocate(kSequence * sizeof(float)));
    native_flash(q.data(), k.data(), v.data(), native.data());
  }
};

Setup& setup() {
  static Setup once;
  return once;
}

void emulated(benchmark::State& state) {
  Setup& s = setup();
  Device& device = Device::instance();
  DeviceOptions options;
  options.checks = {state.range(0) > 0, state.range(0) > 1, state.range(0) > 2};
  options.counters = state.range(1) != 0;
  device.configure(options);
  kernels::AttentionArguments a = flash_arguments(s.dq, s.dk, s.dv, s.o, s.lse, kSequence);
  unsigned row_tiles = kSequence / kFlashRows;
  void* arguments[] = {&a, &row_tiles};
  const std::uint64_t before = device.counts().warp_instructions;
  double seconds = 0;
  for (auto _ : state) {
    const double start = cpu_seconds();
    const Device::Status status = device.launch(*s.module, s.kernel,
                                                {.grid = {row_tiles},
                                                 .block = {kFlashThreads},
                                                 .dynamic_shared_bytes = kFlashSharedBytes,
                                                 .arguments = arguments});
    seconds += cpu_seconds() - start;
    if (status != Device::Status::ok) {
      state.SkipWithError(device.findings().empty() ? "the launch was refused"
                                                    : device.findings()[0].what.c_str());
      return;
    }
  }
  double error = 0;
  for (std::size_t i = 0; i < s.native.size(); ++i)
    error = std::max(error, double(std::fabs(s.native[i] - s.o[i])));
  const double passes = double(state.iterations());
  state.counters["GFLOP/s"] = kFlops * passes / seconds * 1e-9;
  state.counters["ns_per_instruction"] =
      seconds * 1e9 / double(device.counts().warp_instructions - before);
  state.counters["difference_from_native"] = error;
  if (native_seconds > 0) state.counters["times_native"] = seconds / passes / native_seconds;
}

void native(benchmark::State& state) {
  Setup& s = setup();
  double seconds = 0;
  for (auto _ : state) {
    const double start = cpu_seconds();
    native_flash(s.q.data(), s.k.data(), s.v.data(), s.native.data());
    benchmark::ClobberMemory();
    seconds += cpu_seconds() - start;
  }
  native_seconds = seconds / double(state.iterations());
  state.counters["GFLOP/s"] = kFlops / native_seconds * 1e-9;
}

BENCHMARK(native)->Unit(benchmark::kMillisecond);
BENCHMARK(emulated)
    ->ArgNames({"checkers", "counters"})  // memcheck, initcheck, racecheck
    ->Args({3, 0})
    ->Args({2, 0})
    ->Args({1, 0})
    ->Args({0, 0})
    ->Args({1, 1})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace attest::emulator
