// Failures by thread, as the last error is kept by thread. Whoever checks what a call returns may
// still leave the error standing, where the next check of a launch finds and misunderstands it; so
// an error has been dealt with when it was asked for, and not before.
#include "optimized/emulator/runtime/failures.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <thread>
#include <vector>

#include "optimized/emulator/runtime/runtime.hpp"

namespace attest::emulator::runtime {
namespace {

struct Failure {
  std::string function, kernel, why;
  cudaError_t error = cudaSuccess;
  bool operator==(const Failure&) const = default;
};

constexpr std::size_t kFailuresPerThread = 16;  // different ones: enough to see what goes on

struct Failures {
  int process = getpid();  // a forked process has not failed where its parent did
  std::map<std::thread::id, std::vector<Failure>> by_thread;
};
Failures& failures() {
  static Failures& all = *new Failures;
  if (all.process != getpid()) all = {};
  return all;
}

/// What is known of the calling thread's next failure.
Failure& next() {
  thread_local Failure failure;
  return failure;
}

/// Questions may be answered by an error, and programs ask them for that.
bool is_question(std::string_view function) {
  for (const char* word : {"Get", "Query", "Occupancy", "CanAccess"}) {
    if (function.find(word) != function.npos) return true;
  }
  return false;
}

/// What the emulator lacks is no mistake of the program, and is said elsewhere.
bool is_ours(cudaError_t error) {
  return error == cudaErrorNotSupported || error == cudaErrorNoKernelImageForDevice ||
         error == cudaErrorInvalidKernelImage || error == cudaErrorUnknown;
}

bool counts(const Failure& failure) {
  const Runtime& runtime = Runtime::instance();
  // After a fault every call answers with it, and the fault has been told.
  return runtime.sticky == cudaSuccess && !runtime.supervised &&
         Device::instance().options().checks.memcheck && failure.error != cudaErrorNotReady &&
         !is_ours(failure.error) && !is_question(failure.function);
}

void add(Failure failure) {
  std::vector<Failure>& mine = failures().by_thread[std::this_thread::get_id()];
  if (mine.size() < kFailuresPerThread && std::ranges::find(mine, failure) == mine.end())
    mine.push_back(std::move(failure));
}

}  // namespace

void note_failure(const char* function, cudaError_t error) {
  Failure failure = std::move(next());
  next() = {};
  failure.function = function;
  failure.error = error;
  if (counts(failure)) add(std::move(failure));
}

void explain_failure(const std::string& kernel, const std::string& why) {
  next() = {.function = {}, .kernel = kernel, .why = why};
}

void forgive_failures() {
  failures().by_thread.erase(std::this_thread::get_id());
}

void tell_failures() {
  if (failures().by_thread.empty()) return;
  // Another thread may be in a call, and in one that never ends.
  const std::unique_lock lock(Runtime::instance().mutex, std::try_to_lock);
  if (!lock.owns_lock()) return;
  for (const auto& [thread, list] : failures().by_thread) {
    for (const Failure& each : list) {
      const std::string what = each.kernel.empty()
                                   ? each.function
                                   : fmt::format("kernel {}, {}", each.kernel, each.function);
      tell({.kind = "api",
            .what = fmt::format("{}: returned {}{}, and the program never asked for the error with "
                                "cudaGetLastError or cudaPeekAtLastError",
                                what, cudaGetErrorName(each.error),
                                each.why.empty() ? "" : fmt::format(" ({})", each.why)),
            .kernel = each.kernel});
    }
  }
  failures().by_thread.clear();
}

}  // namespace attest::emulator::runtime
