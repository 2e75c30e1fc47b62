// While one lives, this thread's f32 operations take subnormal numbers for zero and leave none,
// where the processor can do that. For the tests of the bounds alone.
#pragma once
#if defined(__SSE__)
#include <xmmintrin.h>
#endif

namespace attest {

#if defined(__SSE__)
constexpr unsigned kFlushAndDenormalsAreZero = 0x8040;  // MXCSR bits FTZ and DAZ
class FlushToZero {
 public:
  explicit FlushToZero(bool on) : before_(_mm_getcsr()) {
    if (on) _mm_setcsr(before_ | kFlushAndDenormalsAreZero);
  }
  ~FlushToZero() { _mm_setcsr(before_); }

 private:
  unsigned before_;
};
#else
struct FlushToZero {
  explicit FlushToZero(bool) {}
};
#endif

}  // namespace attest
