// What nvcc's code calls before main: fat binaries, their kernels and variables. Nothing is loaded
// here; most programs register far more code than they run.
#include "optimized/emulator/runtime/runtime.hpp"

// These have no public header; nvcc's crt/host_runtime.h declares them in code it generates.
using attest::emulator::runtime::Binary;
using attest::emulator::runtime::Kernel;
using attest::emulator::runtime::Runtime;
using attest::emulator::runtime::Symbol;

namespace {

Binary* binary_of(void** handle) {
  return reinterpret_cast<Binary*>(handle);
}

void add_variable(Binary* binary, const void* host, const char* name) {
  Runtime::instance().symbols[host] = Symbol{binary, name};
}

}  // namespace

extern "C" {

void** __cudaRegisterFatBinary(void* wrapper) {
  Runtime& runtime = Runtime::instance();
  const std::lock_guard lock(runtime.mutex);
  auto binary = std::make_unique<Binary>();
  binary->wrapper = wrapper;
  Binary* handle = binary.get();
  runtime.binaries[handle] = std::move(binary);
  return reinterpret_cast<void**>(handle);
}

void __cudaRegisterFatBinaryEnd(void** /*handle*/) {}

void __cudaUnregisterFatBinary(void** handle) {
  Runtime& runtime = Runtime::instance();
  const std::lock_guard lock(runtime.mutex);
  const Binary* binary = binary_of(handle);
  std::erase_if(runtime.symbols, [&](const auto& entry) { return entry.second.binary == binary; });
  std::erase_if(runtime.kernels, [&](const auto& entry) {
    if (entry.second->binary != binary) return false;
    runtime.kernel_handles.erase(entry.second.get());
    return true;
  });
  runtime.binaries.erase(binary);
}

void __cudaRegisterFunction(void** handle, const char* host_function, char* /*device_function*/,
                            const char* name, int /*thread_limit*/, uint3*, uint3*, dim3*, dim3*,
                            int*) {
  Runtime& runtime = Runtime::instance();
  const std::lock_guard lock(runtime.mutex);
  auto kernel = std::make_unique<Kernel>();
  kernel->binary = binary_of(handle);
  kernel->name = name;
  runtime.kernel_handles.insert(kernel.get());
  runtime.kernels[host_function] = std::move(kernel);
}

void __cudaRegisterVar(void** handle, char* host_variable, char* /*device_address*/,
                       const char* name, int /*external*/, std::size_t /*bytes*/, int /*constant*/,
                       int /*global*/) {
  const std::lock_guard lock(Runtime::instance().mutex);
  add_variable(binary_of(handle), host_variable, name);
}

void __cudaRegisterManagedVar(void** handle, void** host_pointer, char* /*device_address*/,
                              const char* name, int /*external*/, std::size_t /*bytes*/,
                              int /*constant*/, int /*global*/) {
  const std::lock_guard lock(Runtime::instance().mutex);
  add_variable(binary_of(handle), host_pointer, name);
  binary_of(handle)->managed.push_back({host_pointer, name});
}

/// Called when the program first touches one of its managed variables on the host.
char __cudaInitModule(void** handle) {
  Runtime& runtime = Runtime::instance();
  const std::lock_guard lock(runtime.mutex);
  return runtime.load(*binary_of(handle)) == cudaSuccess ? 1 : 0;
}

}  // extern "C"
