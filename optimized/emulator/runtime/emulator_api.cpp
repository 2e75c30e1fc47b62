// attest_emulator.h: what the worker process uses beside the CUDA API.
#include <string>

#include "optimized/emulator/runtime/attest_emulator.h"
#include "optimized/emulator/runtime/runtime.hpp"

using attest::emulator::Device;
using attest::emulator::runtime::Runtime;

extern "C" {

void attest_emulator_configure(uint32_t threads, uint32_t memcheck, uint64_t instruction_limit) {
  Runtime& runtime = Runtime::instance();
  const std::lock_guard lock(runtime.mutex);
  runtime.supervised = true;
  Device::instance().configure({.threads = threads == 0 ? 1 : threads,
                                .memcheck = memcheck != 0,
                                .instruction_limit = instruction_limit});
}

int32_t attest_emulator_restrict(void* begin, uint64_t bytes) {
  const std::lock_guard lock(Runtime::instance().mutex);
  return Device::instance().restrict_access(begin, bytes) ? 0 : 1;
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

const char* attest_emulator_load_error(void) {
  Runtime& runtime = Runtime::instance();
  const std::lock_guard lock(runtime.mutex);
  return runtime.load_error.empty() ? nullptr : runtime.load_error.c_str();
}

}  // extern "C"
