// Lines of checks from anybody: refused with an Error, or read, printed and read again as the same.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "fuzz/check.hpp"
#include "reference/text.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const attest::PropertyCase check =
        attest::parse_check({reinterpret_cast<const char*>(data), size});
    if (!(attest::parse_check(print(check)) == check)) std::abort();
  } catch (const attest::Error&) {
    return 0;
  }
  return 0;
}
