// Cases per second of a gate: our kernels in workers on the emulator, beside the same cases put to
// the oracle as its own subject. The ratio of the two is printed: below 1, executing the kernels
// costs less than computing the truth a second time.
#include <benchmark/benchmark.h>

#include <atomic>
#include <chrono>

#include "fuzz/campaign.hpp"
#include "fuzz/testing/kernels_beside.hpp"
#include "properties/oracle_subject.hpp"

namespace attest {
namespace {

constexpr std::uint64_t kCases = 640;  // 40 of each property

/// Seconds that one campaign takes.
double campaign_seconds(const std::function<Subject()>& make_subject, unsigned threads) {
  CampaignOptions options;
  options.budget_cases = kCases;
  options.threads = threads;
  const std::atomic<bool> stop = false;
  const auto start = std::chrono::steady_clock::now();
  benchmark::DoNotOptimize(run_campaign(make_subject, options, {}, stop));
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void gate(benchmark::State& state) {
  const auto threads = static_cast<unsigned>(state.range(0));
  double kernels = 0, oracle = 0;
  for (auto _ : state) {
    const double seconds = campaign_seconds(our_kernels, threads);
    state.SetIterationTime(seconds);
    kernels += seconds;
    oracle += campaign_seconds(oracle_subject, threads);
  }
  const auto cases = static_cast<double>(state.iterations()) * static_cast<double>(kCases);
  state.counters["cases_per_second"] = cases / kernels;
  state.counters["times_oracle_as_subject"] = kernels / oracle;
}
BENCHMARK(gate)->ArgName("threads")->Arg(1)->Arg(2)->UseManualTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace attest
