// Any bytes as a tensor file: parsed and turned into a Problem with its Values, or refused by
// Error.
#include <cstddef>
#include <cstdint>

#include "reference/text.hpp"
#include "reports/formats.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const attest::TensorsFile file =
        attest::read_tensors(std::as_bytes(std::span(data, size)), "fuzzed", "");
    if (!attest::invalidity(file.problem).empty()) __builtin_trap();
  } catch (const attest::Error&) {
    // Refused, as most inputs must be.
  }
  return 0;
}
