// Any bytes as the record of a process: read, or refused by Error. What was read survives being
// printed and read again, and every text is made of it.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "reference/text.hpp"
#include "reports/program_record.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const attest::ProcessRecord record = attest::read_process_record(text, "fuzzed");
    const std::string printed = attest::print(record);
    const attest::ProcessRecord again = attest::read_process_record(printed, "printed");
    if (attest::print(again) != printed) __builtin_trap();
    attest::ProgramRun run;
    run.processes = {record, record};
    attest::text_of(run);
    attest::json_of(run);
  } catch (const attest::Error&) {
    // Refused.
  }
  return 0;
}
