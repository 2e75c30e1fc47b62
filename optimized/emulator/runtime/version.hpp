// The one thing in which libcudart.so.12 and libcudart.so.13 differ, apart from their names.
#pragma once

namespace attest::emulator::runtime {

extern const int kMajorVersion;

}  // namespace attest::emulator::runtime
