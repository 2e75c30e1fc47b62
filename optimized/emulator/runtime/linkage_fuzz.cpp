// Any bytes are a shared library or an attest::Error.
#include <cstddef>
#include <cstdint>

#include "optimized/emulator/runtime/linkage.hpp"
#include "reference/text.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const auto linkage = attest::emulator::inspect_linkage(
        {reinterpret_cast<const std::byte*>(data), size}, "input");
    attest::emulator::emulation_obstacle(linkage);
  } catch (const attest::Error&) {
  }
  return 0;
}
