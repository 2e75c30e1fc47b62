// What 50 digits cost, beside the same problem in plain double with Eigen in the same run. The
// counter `ratio` is the one divided by the other.
#include <benchmark/benchmark.h>

#include <ctime>

#include "reference/oracle/exact.hpp"
#include "reference/oracle/testing/plain_attention.hpp"
#include "reference/random_values.hpp"

namespace {

constexpr attest::Index kHeadDim = 64;

void exact(benchmark::State& state, attest::Digits digits) {
  const attest::Index tokens = state.range(0);
  attest::Problem problem;
  problem.seqlen_q = problem.seqlen_kv = tokens;
  problem.head_dim = problem.head_dim_v = kHeadDim;
  problem.softmax_scale = 0.125F;
  std::mt19937_64 random(1);
  const attest::Values values = attest::random_values(problem, random);
  const attest::PlainMatrix q = attest::matrix_of(values.q), k = attest::matrix_of(values.k),
                            v = attest::matrix_of(values.v);

  // Processor time, so that a busy machine does not distort the ratio.
  std::clock_t exact_time = 0, plain_time = 0;
  for (auto _ : state) {
    const auto start = std::clock();
    benchmark::DoNotOptimize(attest::exact_attention(problem, values, digits));
    const auto middle = std::clock();
    benchmark::DoNotOptimize(attest::plain_attention(q, k, v, problem.softmax_scale));
    exact_time += middle - start;
    plain_time += std::clock() - middle;
  }
  const auto runs = static_cast<double>(state.iterations());
  state.counters["exact_ms"] = 1e3 * static_cast<double>(exact_time) / CLOCKS_PER_SEC / runs;
  state.counters["plain_double_ms"] = 1e3 * static_cast<double>(plain_time) / CLOCKS_PER_SEC / runs;
  state.counters["ratio"] = static_cast<double>(exact_time) / static_cast<double>(plain_time);
}

void fifty_digits(benchmark::State& state) {
  exact(state, attest::Digits::fifty);
}
void hundred_digits(benchmark::State& state) {
  exact(state, attest::Digits::hundred);
}

BENCHMARK(fifty_digits)->Arg(64)->Arg(256)->Unit(benchmark::kMillisecond);
BENCHMARK(hundred_digits)->Arg(64)->Arg(256)->Unit(benchmark::kMillisecond);

}  // namespace
