// The runtime's memory of what the program registered, and the loading of code. See runtime.hpp.
#include "optimized/emulator/runtime/runtime.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "optimized/emulator/fatbin/fatbin.hpp"
#include "optimized/emulator/runtime/last_words.hpp"
#include "optimized/emulator/runtime/record.hpp"

namespace attest::emulator::runtime {

namespace {

/// What the environment says. A library that was told something it does not understand must not go
/// on as though it had been told nothing.
DeviceOptions options_of_environment() {
  const char* line = std::getenv("ATTEST_EMULATOR");
  std::string problem;
  std::optional<DeviceOptions> options = parse_options(line == nullptr ? "" : line, problem);
  if (!options) {
    std::fprintf(stderr, "attest: ATTEST_EMULATOR: %s\n", problem.c_str());
    _exit(2);  // the testbed could not tell
  }
  const bool says_threads = line != nullptr && std::strstr(line, "threads=") != nullptr;
  if (!says_threads) options->threads = std::max(1U, std::thread::hardware_concurrency());
  return *options;
}

}  // namespace

Runtime::Runtime() {
  const DeviceOptions options = options_of_environment();
  Device::instance().configure(options);
  Record::instance().options(options);
}

Runtime& Runtime::instance() {
  // Never destroyed: see runtime.hpp.
  static Runtime& runtime = *new Runtime;
  return runtime;
}

cudaError_t& last_error() {
  thread_local cudaError_t error = cudaSuccess;
  return error;
}

void tell(const CheckerFinding& finding) {
  if (Runtime::instance().supervised) return;
  if (Record::instance().on()) return Record::instance().finding(finding);
  std::fprintf(stderr, "attest: %s: %s\n", finding.kind.c_str(), finding.what.c_str());
}

void complain(const std::string& what, std::string_view kind) {
  if (Record::instance().on()) return Record::instance().obstacle(kind, what);
  std::fprintf(stderr, "attest: %s\n", what.c_str());
}

namespace {

struct Loaded {
  std::shared_ptr<LoadedModule> module = {};
  cudaError_t error = cudaSuccess;
  std::string why = {};
};

Loaded load_code(const Binary& binary) {
  std::string source;
  try {
    if (!binary.text.empty()) return {.module = Device::instance().load(binary.text)};
    const auto images = fatbin::read_images(fatbin::container_of(binary.wrapper));
    const fatbin::Image& image = fatbin::choose_ptx(images, kArchitecture);
    source = std::string(image.source_name);
    return {.module = Device::instance().load(fatbin::ptx_text(image))};
  } catch (const fatbin::FatbinError& caught) {
    const bool no_ptx = caught.kind == fatbin::FatbinError::Kind::no_ptx;
    return {.error = no_ptx ? cudaErrorNoKernelImageForDevice : cudaErrorInvalidKernelImage,
            .why = caught.what()};
  } catch (const ptx::SyntaxError& caught) {
    return {.error = cudaErrorInvalidKernelImage,
            .why = fmt::format("the PTX{} cannot be read: {}",
                               source.empty() ? "" : " of " + source, caught.what())};
  }
}

}  // namespace

cudaError_t Runtime::load(Binary& binary) {
  if (binary.tried) return binary.error;
  binary.tried = true;
  if (!supervised) watch_for_death();
  Loaded loaded = load_code(binary);
  binary.module = std::move(loaded.module);
  binary.error = loaded.error;
  if (binary.error != cudaSuccess) {
    complain(loaded.why, "load");
    if (load_error.empty()) load_error = loaded.why;
    return binary.error;
  }
  for (const Binary::Managed& managed : binary.managed) {
    const Device::Allocation found = Device::instance().find_variable(*binary.module, managed.name);
    *managed.host_pointer = found.base;
  }
  return cudaSuccess;
}

Kernel* Runtime::find_kernel(const void* function) {
  if (const auto found = kernels.find(function); found != kernels.end()) {
    return found->second.get();
  }
  if (!kernel_handles.contains(function)) return nullptr;
  return static_cast<Kernel*>(const_cast<void*>(function));
}

cudaError_t Runtime::prepare(Kernel& kernel) {
  if (kernel.facts) return cudaSuccess;
  const cudaError_t error = load(*kernel.binary);
  if (error != cudaSuccess) return error;
  const LoadedModule& module = *kernel.binary->module;
  if (!Device::instance().has_kernel(module, kernel.name)) return cudaErrorInvalidDeviceFunction;
  kernel.facts = Device::instance().facts(module, kernel.name);
  const std::uint32_t used = kernel.facts->static_shared_bytes;
  kernel.dynamic_shared_max = used < kSharedPerBlock ? kSharedPerBlock - used : 0;
  return cudaSuccess;
}

cudaError_t Runtime::locate(const void* symbol, Device::Allocation& where) {
  auto found = symbols.find(symbol);
  if (found == symbols.end()) {
    // A managed variable is named by where it lies, since its host shadow is only a pointer to it.
    for (const auto& [handle, binary] : binaries) {
      for (const Binary::Managed& managed : binary->managed) {
        if (*managed.host_pointer == symbol) found = symbols.find(managed.host_pointer);
      }
    }
  }
  if (found == symbols.end()) return cudaErrorInvalidSymbol;
  const cudaError_t error = load(*found->second.binary);
  if (error != cudaSuccess) return error;
  where = Device::instance().find_variable(*found->second.binary->module, found->second.name);
  return where.base == nullptr ? cudaErrorInvalidSymbol : cudaSuccess;
}

void* Runtime::allocate(std::size_t bytes, Block block) {
  void* address = Device::instance().allocate(bytes);
  if (address != nullptr) blocks[address] = block;
  return address;
}

void Runtime::reset() {
  sticky = cudaSuccess;
  last_error() = cudaSuccess;
  Device::instance().reset_findings();
}

}  // namespace attest::emulator::runtime
