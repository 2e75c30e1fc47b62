// The clock of the benchmarks.
#pragma once
#include <ctime>

namespace attest::emulator {

/// Time this thread has computed: what others do on the same machine does not count.
inline double cpu_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return double(t.tv_sec) + double(t.tv_nsec) * 1e-9;
}

}  // namespace attest::emulator
