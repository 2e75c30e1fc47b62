// The two checks that the test programs make; a failed one names its line and ends the program.
#pragma once
#include <cstdio>
#include <cstdlib>

#define REQUIRE(condition)                                                \
  do {                                                                    \
    if (!(condition)) {                                                   \
      std::printf("%s:%d: not so: %s\n", __FILE__, __LINE__, #condition); \
      std::exit(1);                                                       \
    }                                                                     \
  } while (0)

#define REQUIRE_ERROR(call, wanted)                                         \
  do {                                                                      \
    const cudaError_t got_ = (call);                                        \
    if (got_ != (wanted)) {                                                 \
      std::printf("%s:%d: %s gave %s, not %s\n", __FILE__, __LINE__, #call, \
                  cudaGetErrorName(got_), cudaGetErrorName(wanted));        \
      std::exit(1);                                                         \
    }                                                                       \
  } while (0)

#define REQUIRE_OK(call) REQUIRE_ERROR(call, cudaSuccess)
