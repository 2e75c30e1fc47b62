// attest_emulator.h: what the worker process uses beside the CUDA API.
#include <string>

#include "optimized/emulator/runtime/attest_emulator.h"
#include "optimized/emulator/runtime/last_words.hpp"
#include "optimized/emulator/runtime/runtime.hpp"

using attest::emulator::Device;
using attest::emulator::runtime::Runtime;

extern "C" {

const char* attest_emulator_configure(const char* options) {
  static std::string problem;
  Runtime& runtime = Runtime::instance();
  const std::lock_guard lock(runtime.mutex);
  runtime.supervised = true;
  const auto parsed = attest::emulator::parse_options(options, problem);
  if (!parsed) return problem.c_str();
  Device::instance().configure(*parsed);
  return nullptr;
}

int32_t attest_emulator_restrict(void* begin, uint64_t bytes) {
  const std::lock_guard lock(Runtime::instance().mutex);
  return Device::instance().restrict_access(begin, bytes) ? 0 : 1;
}

void attest_emulator_unwritten(void* begin, uint64_t bytes) {
  const std::lock_guard lock(Runtime::instance().mutex);
  Device::instance().mark_written(begin, bytes, false);
}

uint32_t attest_emulator_finding_count(void) {
  const std::lock_guard lock(Runtime::instance().mutex);
  return static_cast<uint32_t>(Device::instance().findings().size());
}

const char* attest_emulator_finding_kind(uint32_t index) {
  const std::lock_guard lock(Runtime::instance().mutex);
  const auto& findings = Device::instance().findings();
  return index < findings.size() ? findings[index].kind.c_str() : "";
}

const char* attest_emulator_finding_text(uint32_t index) {
  const std::lock_guard lock(Runtime::instance().mutex);
  const auto& findings = Device::instance().findings();
  return index < findings.size() ? findings[index].what.c_str() : "";
}

void attest_emulator_reset(void) {
  Runtime& runtime = Runtime::instance();
  const std::lock_guard lock(runtime.mutex);
  runtime.reset();
}

void attest_emulator_counts(uint64_t* launches, uint64_t* warp_instructions) {
  const std::lock_guard lock(Runtime::instance().mutex);
  const Device::Counts counts = Device::instance().counts();
  if (launches != nullptr) *launches = counts.launches;
  if (warp_instructions != nullptr) *warp_instructions = counts.warp_instructions;
}

const char* attest_emulator_profile(void) {
  static std::string text;
  const std::lock_guard lock(Runtime::instance().mutex);
  text = print(Device::instance().profile());
  return text.c_str();
}

uint32_t attest_emulator_totals(uint64_t* values, uint32_t room) {
  const std::lock_guard lock(Runtime::instance().mutex);
  const attest::emulator::Totals totals = Device::instance().totals();
  const auto columns = attest::emulator::total_columns();
  for (uint32_t i = 0; i < room && i < columns.size(); ++i) values[i] = totals.*columns[i].value;
  return static_cast<uint32_t>(columns.size());
}

const char* attest_emulator_launched(void) {
  static std::string text;
  Runtime& runtime = Runtime::instance();
  const std::lock_guard lock(runtime.mutex);
  text.clear();
  for (const std::string& name : runtime.launched) text += name + "\n";
  runtime.launched.clear();
  return text.c_str();
}

void attest_emulator_limit(uint64_t warp_instructions) {
  const std::lock_guard lock(Runtime::instance().mutex);
  Device::instance().limit_instructions(warp_instructions);
}

const char* attest_emulator_load_error(void) {
  Runtime& runtime = Runtime::instance();
  const std::lock_guard lock(runtime.mutex);
  return runtime.load_error.empty() ? nullptr : runtime.load_error.c_str();
}

int32_t attest_emulator_own_fault(const void* info, const void* context, char* text,
                                  uint32_t room) {
  return attest::emulator::runtime::own_fault_text(*static_cast<const siginfo_t*>(info), context,
                                                   text, room) != 0
             ? 1
             : 0;
}

}  // extern "C"
