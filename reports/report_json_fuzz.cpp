// Any bytes as run.json and as a finding's verdict.json: read, or refused by Error. A run that was
// read must be written and read again, and every text made of it.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "reference/text.hpp"
#include "reports/finding_json.hpp"
#include "reports/formats.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const attest::Run run = attest::run_of_json(text, "fuzzed");
    const std::string written = attest::run_json_of(run);
    if (attest::run_json_of(attest::run_of_json(written, "written")) != written) __builtin_trap();
    attest::junit_of(run);
    attest::summary_of(run);
    attest::table_of(run, {.columns = 60, .colour = true});
  } catch (const attest::Error&) {
    // Refused.
  }
  try {
    attest::finding_of_json(text, "fuzzed");
  } catch (const attest::Error&) {
    // Refused.
  }
  return 0;
}
