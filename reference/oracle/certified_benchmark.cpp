// What a proven radius costs: each tier of the certified oracle beside plain double with Eigen and
// beside the exact oracle at 50 digits, in the same run, in processor time; and its memory.
#include <benchmark/benchmark.h>
#include <sys/resource.h>

#include <ctime>

#include "reference/oracle/certified.hpp"
#include "reference/oracle/testing/plain_attention.hpp"
#include "reference/random_values.hpp"

namespace attest {
namespace {

Problem problem_of(Index queries, Index keys, Index head_dim) {
  Problem problem;
  problem.seqlen_q = queries;
  problem.seqlen_kv = keys;
  problem.head_dim = problem.head_dim_v = head_dim;
  problem.softmax_scale = 0.125F;
  return problem;
}

template <class Work>
double milliseconds(const Work& work) {
  const std::clock_t start = std::clock();
  work();
  return 1e3 * static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

/// Per query row, of `keys` keys, from the difference between many rows and one: what is done once
/// for all rows does not count.
template <class Work>
double milliseconds_a_row(Index rows, Index keys, Index head_dim, const Work& work) {
  std::mt19937_64 random(1);
  const Problem one = problem_of(1, keys, head_dim), many = problem_of(1 + rows, keys, head_dim);
  const Values of_one = random_values(one, random), of_many = random_values(many, random);
  const double once = milliseconds([&] { work(one, of_one); });
  return (milliseconds([&] { work(many, of_many); }) - once) / static_cast<double>(rows);
}

void in_double(benchmark::State& state) {
  const Index tokens = state.range(0), head_dim = state.range(1);
  const Problem problem = problem_of(tokens, tokens, head_dim);
  std::mt19937_64 random(1);
  const Values values = random_values(problem, random);
  const PlainMatrix q = matrix_of(values.q), k = matrix_of(values.k), v = matrix_of(values.v);
  double certified = 0, plain = 0;
  for (auto _ : state) {
    certified +=
        milliseconds([&] { benchmark::DoNotOptimize(certified_attention(problem, values)); });
    plain += milliseconds(
        [&] { benchmark::DoNotOptimize(plain_attention(q, k, v, problem.softmax_scale)); });
  }
  const auto runs = static_cast<double>(state.iterations());
  const double fifty =
      milliseconds_a_row(512 * 16 / tokens + 4, tokens, head_dim,
                         [](const Problem& p, const Values& its) {
                           benchmark::DoNotOptimize(exact_attention(p, its, Digits::fifty));
                         }) *
      static_cast<double>(tokens);
  state.counters["certified_ms"] = certified / runs;
  state.counters["over_plain"] = certified / plain;
  state.counters["fifty_ms"] = fifty;
  state.counters["fifty_over_certified"] = fifty / (certified / runs);
}

/// A demand that double misses everywhere and pairs of doubles meet.
void in_pairs(benchmark::State& state) {
  const Index tokens = state.range(0), head_dim = state.range(1), rows = 256;
  double pairs = 0, fifty = 0;
  for (auto _ : state) {
    pairs += milliseconds_a_row(rows, tokens, head_dim, [](const Problem& p, const Values& its) {
      const auto count = static_cast<std::size_t>(p.seqlen_q);
      const Demand demand{
          std::vector<double>(count * static_cast<std::size_t>(p.head_dim_v), 1e-22),
          std::vector<double>(count, 1e-22)};
      const Certified certified = certified_attention(p, its, demand);
      if (certified.rows_of_tiers()[static_cast<std::size_t>(Tier::double_double)] != p.seqlen_q) {
        std::abort();
      }
    });
    fifty += milliseconds_a_row(8, tokens, head_dim, [](const Problem& p, const Values& its) {
      benchmark::DoNotOptimize(exact_attention(p, its, Digits::fifty));
    });
  }
  state.counters["pairs_ms_a_row"] = pairs / static_cast<double>(state.iterations());
  state.counters["fifty_over_pairs"] = fifty / pairs;
}

double peak_mebibytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;  // Linux counts in KiB
}

/// The largest head asked for, inputs and results included. Run it alone: the peak is the
/// process's.
void memory(benchmark::State& state) {
  std::mt19937_64 random(1);
  const Problem problem = problem_of(state.range(0), state.range(0), 128);
  const Values values = random_values(problem, random);
  for (auto _ : state) benchmark::DoNotOptimize(certified_attention(problem, values));
  state.counters["peak_MiB"] = peak_mebibytes();
}

BENCHMARK(in_double)->ArgsProduct({{128, 512, 2048}, {64, 128}})->Unit(benchmark::kMillisecond);
BENCHMARK(in_pairs)
    ->Args({512, 64})
    ->Args({512, 128})
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);
BENCHMARK(memory)->Arg(32768)->Iterations(1)->Unit(benchmark::kSecond);

}  // namespace
}  // namespace attest
