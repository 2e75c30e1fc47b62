// What the process boundary costs: one small prefill through the worker, and the same function of
// the same library called in this process. The first prints their ratio.
#include <benchmark/benchmark.h>
#include <dlfcn.h>

#include <array>
#include <chrono>
#include <stdexcept>
#include <vector>

#include "optimized/plugin/abi.hpp"
#include "optimized/plugin/attest_subject.h"
#include "optimized/plugin/patterns.hpp"
#include "optimized/plugin/testing/test_cases.hpp"
#include "optimized/plugin/worker.hpp"

namespace attest {
namespace {

Problem tiny_problem() {
  Problem problem;
  problem.num_heads_q = problem.num_heads_kv = 2;
  problem.seqlen_q = problem.seqlen_kv = 8;
  problem.head_dim = problem.head_dim_v = 16;
  return problem;
}

// Dense tensors in this process, as the plugin wants them.
class InProcess {
 public:
  explicit InProcess(const Problem& p) : values_(counting_values(p)) {
    void* library = dlopen(options_for("echoes").plugin.c_str(), RTLD_NOW);
    if (library == nullptr) throw std::runtime_error(dlerror());
    const auto subject_of =
        reinterpret_cast<AttestSubjectFunction>(dlsym(library, ATTEST_SUBJECT_SYMBOL));
    subject_ = subject_of(ATTEST_ABI_VERSION);
    attention_.abi_version = ATTEST_ABI_VERSION;
    attention_.struct_bytes = sizeof(attention_);
    attention_.problem = abi_problem(p);
    o_ = Tensor(p.output, {p.batch, p.num_heads_q, p.seqlen_q, p.head_dim_v});
    lse_ = Tensor(Format::f32, {p.batch, p.num_heads_q, p.seqlen_q, 1});
    attention_.q = view(0, values_.q, 4);
    attention_.k = view(1, values_.k, 4);
    attention_.v = view(2, values_.v, 4);
    attention_.o = view(3, o_, 4);
    attention_.lse = view(4, lse_, 3);
    attention_.scratch = scratch_.data();
    attention_.scratch_bytes = static_cast<std::int64_t>(scratch_.size());
  }

  void call() const {
    if (subject_->prefill(&attention_) != 0) throw std::runtime_error("the plugin refused");
  }

 private:
  DLTensor view(std::size_t slot, Tensor& tensor, int axes) {
    const Extent4& extent = tensor.extent;
    shapes_[slot] = extent;
    strides_[slot] = {extent[1] * extent[2] * extent[3], extent[2] * extent[3], extent[3], 1};
    DLTensor dl{};
    dl.data = tensor.bytes.data();
    dl.device = {kDLCPU, 0};
    dl.ndim = axes;
    dl.dtype = dlpack_type(element_of(tensor.format));
    dl.shape = shapes_[slot].data();
    dl.strides = strides_[slot].data();
    return dl;
  }

  Values values_;
  Tensor o_, lse_;
  alignas(256) std::array<std::byte, 1024> scratch_{};  // what echoes.c asks for
  std::array<Extent4, 5> shapes_{}, strides_{};
  AttestAttention attention_{};
  const AttestSubject* subject_ = nullptr;
};

template <typename Call>
double seconds_of(int repetitions, Call call) {
  const auto begin = std::chrono::steady_clock::now();
  for (int n = 0; n < repetitions; ++n) call();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count() /
         repetitions;
}

void through_worker(benchmark::State& state) {
  const Problem problem = tiny_problem();
  const Values values = counting_values(problem);
  const Subject subject = open_plugin(options_for("echoes"));
  const auto call = [&] {
    if (subject.call(Attend{Operation::prefill, problem, values}, Poison::nan).fault)
      throw std::runtime_error("fault");
  };
  call();
  for (auto _ : state) call();
  const InProcess direct(problem);
  constexpr int kRepetitions = 1000;
  state.counters["times_in_process"] =
      seconds_of(kRepetitions, call) / seconds_of(kRepetitions, [&] { direct.call(); });
  state.counters["round_trips_per_second"] =
      benchmark::Counter(static_cast<double>(state.iterations()), benchmark::Counter::kIsRate);
}
BENCHMARK(through_worker)->UseRealTime();

void in_process(benchmark::State& state) {
  const InProcess direct(tiny_problem());
  for (auto _ : state) direct.call();
}
BENCHMARK(in_process)->UseRealTime();

// Our own kernel on the emulator: what a case of the gate pays per call, and for counters.
void through_worker_emulated(benchmark::State& state) {
  const Problem problem = tiny_problem();
  const Values values = counting_values(problem);
  WorkerOptions options;
  options.plugin = program_folder() / "plugins" / "attest_kernels.so";
  options.device = DeviceChoice::emulated;
  options.counters = state.range(0) != 0;
  const Subject subject = open_plugin(options);
  for (auto _ : state) {
    const Reply reply = subject.call(Attend{Operation::prefill, problem, values}, Poison::nan);
    if (reply.fault) throw std::runtime_error(reply.fault->what);
    state.counters["warp_instructions"] = static_cast<double>(reply.counters.warp_instructions);
  }
}
BENCHMARK(through_worker_emulated)->ArgName("counters")->Arg(0)->Arg(1)->UseRealTime();

void start_a_worker(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(open_plugin(options_for("echoes")));
}
BENCHMARK(start_a_worker)->UseRealTime();

}  // namespace
}  // namespace attest
