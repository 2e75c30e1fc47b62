// Launches, by every protocol that nvcc has used. What a device would refuse is refused here,
// before anything runs; what a kernel then does wrong becomes a sticky error.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "optimized/emulator/runtime/record.hpp"
#include "optimized/emulator/runtime/runtime.hpp"

namespace attest::emulator::runtime {
namespace {

struct Request {
  dim3 grid, block;
  void** arguments = nullptr;
  std::size_t shared_bytes = 0;
  cudaStream_t stream = nullptr;
  bool cooperative = false;
};

/// The configuration between <<< and >>>, from its push until the stub pops it.
struct Configuration {
  dim3 grid, block;
  std::size_t shared_bytes = 0;
  cudaStream_t stream = nullptr;
};
thread_local std::vector<Configuration> pushed;

cudaError_t error_of(const std::string& kind) {
  if (kind == "memcheck") return cudaErrorIllegalAddress;
  if (kind == "assert") return cudaErrorAssert;
  if (kind == "deadlock" || kind == "limit") return cudaErrorLaunchTimeout;
  if (kind == "unsupported") return cudaErrorNotSupported;
  return cudaErrorLaunchFailure;
}

/// How many blocks the GPU holds at a time.
std::uint64_t resident_blocks(const Kernel& kernel, const Request& request) {
  const std::uint32_t threads = request.block.x * request.block.y * request.block.z;
  return std::uint64_t{kMultiprocessors} * static_cast<std::uint64_t>(blocks_per_multiprocessor(
                                               kernel, threads, request.shared_bytes));
}

cudaError_t run(Kernel& kernel, const Request& request, void** arguments) {
  Device& device = Device::instance();
  Runtime& runtime = Runtime::instance();
  const std::size_t seen = device.findings().size();
  const std::uint64_t executed = device.counts().warp_instructions;
  const std::string name = readable_name(kernel.name);
  if (std::ranges::find(runtime.launched, name) == runtime.launched.end())
    runtime.launched.push_back(name);
  Record::instance().began(name);
  Device::Launch launch;
  launch.grid = {request.grid.x, request.grid.y, request.grid.z};
  launch.block = {request.block.x, request.block.y, request.block.z};
  launch.dynamic_shared_bytes = static_cast<std::uint32_t>(request.shared_bytes);
  launch.arguments = arguments;
  launch.cooperative = request.cooperative;
  launch.resident_blocks = resident_blocks(kernel, request);
  const Device::Status status = device.launch(*kernel.binary->module, kernel.name, launch);
  const std::vector<CheckerFinding>& findings = device.findings();
  for (std::size_t i = seen; i < findings.size(); ++i) tell(findings[i]);
  Record::instance().ended(name, device.counts().warp_instructions - executed);
  // The device keeps a limited number. Those that let the program go on have been told.
  if (status == Device::Status::ok && !runtime.supervised) device.reset_findings();
  if (status == Device::Status::ok) return cudaSuccess;
  if (status == Device::Status::invalid_configuration) return cudaErrorInvalidConfiguration;
  runtime.sticky = findings.empty() ? cudaErrorLaunchFailure : error_of(findings.back().kind);
  return runtime.sticky;
}

/// Why a device would refuse the launch.
struct Refusal {
  cudaError_t error = cudaSuccess;
  std::string why = {};
};

Refusal refusal(const Kernel& kernel, const Request& request) {
  const dim3 &grid = request.grid, &block = request.block;
  const auto threads = std::uint64_t{block.x} * block.y * block.z;
  const bool empty = threads == 0 || grid.x == 0 || grid.y == 0 || grid.z == 0;
  if (empty || block.x > kThreadsPerBlockMax || block.y > kThreadsPerBlockMax ||
      block.z > kBlockZMax || threads > kThreadsPerBlockMax || grid.x > kGridXMax ||
      grid.y > kGridYZMax || grid.z > kGridYZMax) {
    return {cudaErrorInvalidConfiguration,
            fmt::format("a grid of ({},{},{}) blocks of ({},{},{}) threads", grid.x, grid.y, grid.z,
                        block.x, block.y, block.z)};
  }
  // Beyond __launch_bounds__, and beyond the shared memory that was asked for, an argument is
  // invalid rather than the configuration.
  if (threads > kernel.facts->max_threads_per_block) {
    return {cudaErrorInvalidValue,
            fmt::format("{} threads per block, and its launch bounds allow {}", threads,
                        kernel.facts->max_threads_per_block)};
  }
  if (request.shared_bytes > kernel.dynamic_shared_max) {
    return {cudaErrorInvalidValue,
            fmt::format("{} bytes of dynamic shared memory, and it may have {}: "
                        "cudaFuncAttributeMaxDynamicSharedMemorySize",
                        request.shared_bytes, kernel.dynamic_shared_max)};
  }
  const std::uint64_t blocks = std::uint64_t{grid.x} * grid.y * grid.z;
  if (request.cooperative && blocks > resident_blocks(kernel, request)) {
    return {cudaErrorCooperativeLaunchTooLarge,
            fmt::format("{} blocks, and the device holds {} at a time", blocks,
                        resident_blocks(kernel, request))};
  }
  return {};
}

/// The arguments of a launch, copied: a captured launch runs after the caller's are gone.
class Arguments {
 public:
  Arguments(const Kernel& kernel, void** arguments) {
    for (std::size_t i = 0; i < kernel.facts->parameter_bytes.size(); ++i) {
      const auto* bytes = static_cast<const std::byte*>(arguments[i]);
      values_.emplace_back(bytes, bytes + kernel.facts->parameter_bytes[i]);
    }
  }
  std::vector<void*> pointers() {
    std::vector<void*> result;
    for (std::vector<std::byte>& value : values_) result.push_back(value.data());
    return result;
  }

 private:
  std::vector<std::vector<std::byte>> values_;
};

/// After a fault nothing runs any more; whoever only sees the error of a later launch would look
/// for its reason in the wrong kernel.
void name_earlier_fault(const void* function) {
  Runtime& runtime = Runtime::instance();
  const std::lock_guard lock(runtime.mutex);
  const Kernel* kernel = runtime.find_kernel(function);
  const std::vector<CheckerFinding>& findings = Device::instance().findings();
  if (runtime.sticky == cudaSuccess || runtime.supervised || kernel == nullptr || findings.empty())
    return;
  static std::set<std::string> told;
  if (!told.insert(kernel->name).second) return;
  complain("the kernel " + kernel->name + " is not run, because of the earlier fault: " +
           findings.back().kind + ": " + findings.back().what);
}

Refusal start(Runtime& runtime, const void* function, const Request& request, Kernel*& kernel) {
  kernel = runtime.find_kernel(function);
  if (kernel == nullptr) return {cudaErrorInvalidDeviceFunction, "no kernel has this address"};
  if (!is_stream(request.stream))
    return {cudaErrorInvalidResourceHandle, "there is no such stream"};
  if (const cudaError_t error = runtime.prepare(*kernel); error != cudaSuccess) return {error};
  if (Refusal refused = refusal(*kernel, request); refused.error != cudaSuccess) return refused;
  if (!kernel->facts->parameter_bytes.empty() && request.arguments == nullptr)
    return {cudaErrorInvalidValue, "it has parameters, and got no arguments"};
  const auto arguments = std::make_shared<Arguments>(*kernel, request.arguments);
  return {enqueue(request.stream, [kernel, request, arguments] {
    return run(*kernel, request, arguments->pointers().data());
  })};
}

cudaError_t launch(const void* function, const Request& request,
                   const char* name = __builtin_FUNCTION()) {
  name_earlier_fault(function);
  return call(
      [&](Runtime& runtime) {
        Kernel* kernel = nullptr;
        const Refusal refused = start(runtime, function, request, kernel);
        if (refused.error != cudaSuccess)
          explain_failure(kernel ? readable_name(kernel->name) : "", refused.why);
        return refused.error;
      },
      AfterFault::refuses, name);
}

}  // namespace
}  // namespace attest::emulator::runtime

using attest::emulator::runtime::call;
using attest::emulator::runtime::Kernel;
using attest::emulator::runtime::Runtime;

extern "C" {

unsigned __cudaPushCallConfiguration(dim3 grid, dim3 block, std::size_t shared_bytes,
                                     cudaStream_t stream) {
  attest::emulator::runtime::pushed.push_back({grid, block, shared_bytes, stream});
  return 0;
}

cudaError_t __cudaPopCallConfiguration(dim3* grid, dim3* block, std::size_t* shared_bytes,
                                       void* stream) {
  auto& pushed = attest::emulator::runtime::pushed;
  if (pushed.empty()) return cudaErrorMissingConfiguration;
  *grid = pushed.back().grid;
  *block = pushed.back().block;
  *shared_bytes = pushed.back().shared_bytes;
  *static_cast<cudaStream_t*>(stream) = pushed.back().stream;
  pushed.pop_back();
  return cudaSuccess;
}

// Answers after a fault too: the stub that nvcc writes around a kernel asks once, at the first
// launch, and keeps what it got. Refused then, that kernel could never be launched again, not even
// after the fault is forgotten.
cudaError_t cudaGetKernel(cudaKernel_t* handle, const void* function) {
  return call(
      [&](Runtime& runtime) {
        Kernel* kernel = runtime.find_kernel(function);
        if (kernel == nullptr) return cudaErrorInvalidDeviceFunction;
        *handle = reinterpret_cast<cudaKernel_t>(kernel);
        return cudaSuccess;
      },
      attest::emulator::runtime::AfterFault::answers);
}

cudaError_t __cudaGetKernel(cudaKernel_t* handle, const void* function) {
  return cudaGetKernel(handle, function);
}

cudaError_t cudaGetFuncBySymbol(cudaFunction_t* handle, const void* function) {
  return cudaGetKernel(reinterpret_cast<cudaKernel_t*>(handle), function);
}

cudaError_t cudaLaunchKernel(const void* function, dim3 grid, dim3 block, void** arguments,
                             std::size_t shared_bytes, cudaStream_t stream) {
  return attest::emulator::runtime::launch(function,
                                           {grid, block, arguments, shared_bytes, stream, false});
}

cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void** arguments,
                               std::size_t shared_bytes, cudaStream_t stream) {
  return cudaLaunchKernel(kernel, grid, block, arguments, shared_bytes, stream);
}

cudaError_t cudaLaunchCooperativeKernel(const void* function, dim3 grid, dim3 block,
                                        void** arguments, std::size_t shared_bytes,
                                        cudaStream_t stream) {
  return attest::emulator::runtime::launch(function,
                                           {grid, block, arguments, shared_bytes, stream, true});
}

cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* function,
                                void** arguments) {
  if (config == nullptr) return call([](Runtime&) { return cudaErrorInvalidValue; });
  bool cooperative = false;
  for (unsigned i = 0; i < config->numAttrs; ++i) {
    const cudaLaunchAttribute& attribute = config->attrs[i];
    if (attribute.id == cudaLaunchAttributeCooperative) cooperative = attribute.val.cooperative;
    const auto& cluster = attribute.val.clusterDim;
    if (attribute.id == cudaLaunchAttributeClusterDimension &&
        std::uint64_t{cluster.x} * cluster.y * cluster.z > 1) {
      attest::emulator::runtime::complain("clusters of more than one block are not emulated");
      return call([](Runtime&) { return cudaErrorNotSupported; });
    }
  }
  return attest::emulator::runtime::launch(
      function, {config->gridDim, config->blockDim, arguments, config->dynamicSmemBytes,
                 config->stream, cooperative});
}

}  // extern "C"
