// Any bytes at all: a line is either refused with an Error, or what it means survives the round
// trip. Nothing else may happen.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "reference/text.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view line(reinterpret_cast<const char*>(data), size);
  try {
    const attest::Case read = attest::parse_case(line);
    if (!attest::invalidity(read.problem).empty()) std::abort();
    const std::string canonical = attest::print(read);
    if (!(attest::parse_case(canonical) == read)) std::abort();
    if (attest::print(attest::parse_case(canonical)) != canonical) std::abort();
  } catch (const attest::Error&) {
  }
  return 0;
}
