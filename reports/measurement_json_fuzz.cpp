// Any bytes as measurement.json: read, or refused by Error. What was read must be written and read
// again, shown as tables, and judged.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "reference/text.hpp"
#include "reports/measurement.hpp"
#include "reports/measurement_comparison.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const attest::Measurement read = attest::measurement_of_json(text, "fuzzed");
    const std::string written = attest::measurement_json_of(read);
    if (attest::measurement_json_of(attest::measurement_of_json(written, "written")) != written) {
      __builtin_trap();
    }
    attest::measurement_table(read, 100);
    attest::end_of(read);
    attest::comparison_text(attest::compared(read, read), read, 100);
  } catch (const attest::Error&) {
    // Refused.
  }
  return 0;
}
