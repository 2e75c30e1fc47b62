// Any bytes at all: a precision line is either refused with an Error, or what it means survives the
// round trip. Nothing else may happen.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "reference/precision_text.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view line(reinterpret_cast<const char*>(data), size);
  for (const attest::Format input : {attest::Format::f32, attest::Format::bf16}) {
    try {
      const attest::PrecisionPath read = attest::parse_precision(line, input);
      if (!attest::precision_invalidity(read).empty()) std::abort();
      const std::string canonical = attest::print(read);
      if (!(attest::parse_precision(canonical) == read)) std::abort();
      if (attest::print(attest::parse_precision(canonical)) != canonical) std::abort();
    } catch (const attest::Error&) {
    }
  }
  return 0;
}
