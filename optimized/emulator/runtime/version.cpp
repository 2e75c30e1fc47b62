// Compiled once for each library, with its major version. See version.hpp.
#include "optimized/emulator/runtime/version.hpp"

namespace attest::emulator::runtime {

const int kMajorVersion = ATTEST_CUDART_MAJOR;

}  // namespace attest::emulator::runtime
