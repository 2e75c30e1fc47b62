// A CUDA call that failed ends the program with exit code 2 and one sentence; and how long
// something takes by the device's own clock. Knows nothing of what is called.
#pragma once
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

inline void require(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(status));
  std::exit(2);
}

/// Median of `repetitions` runs between two events, after two runs that are not counted. Seconds.
template <class Run>
double median_seconds(int repetitions, Run run) {
  cudaEvent_t begin, end;
  require(cudaEventCreate(&begin), "cudaEventCreate");
  require(cudaEventCreate(&end), "cudaEventCreate");
  for (int i = 0; i < 2; ++i) run();
  std::vector<double> seconds;
  for (int i = 0; i < repetitions; ++i) {
    require(cudaEventRecord(begin), "cudaEventRecord");
    run();
    require(cudaEventRecord(end), "cudaEventRecord");
    require(cudaEventSynchronize(end), "cudaEventSynchronize");
    float milliseconds = 0;
    require(cudaEventElapsedTime(&milliseconds, begin, end), "cudaEventElapsedTime");
    seconds.push_back(milliseconds * 1e-3);
  }
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  std::sort(seconds.begin(), seconds.end());
  return seconds[seconds.size() / 2];
}
