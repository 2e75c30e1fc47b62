// What the emulating runtime remembers: fat binaries with their kernels and variables, memory,
// streams, errors. Maps CUDA's notions onto the Device; knows nothing of how anything is executed.
// One per process, alive until its very end, because programs unregister their code at exit.
#pragma once
#include <cuda_runtime_api.h>

#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "optimized/emulator/device.hpp"
#include "optimized/emulator/runtime/failures.hpp"

namespace attest::emulator::runtime {

/// A fat binary that the program registered. Its code is loaded when first needed.
struct Binary {
  const void* wrapper = nullptr;
  std::string text;  // PTX that the program loaded by itself; empty: the wrapper has it
  bool tried = false;
  cudaError_t error = cudaSuccess;  // of loading
  std::shared_ptr<LoadedModule> module;
  struct Managed {
    void** host_pointer;
    std::string name;
  };
  std::vector<Managed> managed;
};

/// A __global__ function. Programs see its address as cudaKernel_t and cudaFunction_t.
struct Kernel {
  Binary* binary = nullptr;
  std::string name;
  std::uint32_t dynamic_shared_max = 0;  // set by the first use
  std::optional<Device::KernelFacts> facts;
};

/// A __device__, __constant__ or __managed__ variable, known by the address of its host shadow.
struct Symbol {
  Binary* binary = nullptr;
  std::string name;
};

enum class MemoryKind : std::uint8_t { device, host, managed, registered };
struct Block {
  MemoryKind kind = MemoryKind::device;
  unsigned flags = 0;
};

/// Work that a stream does, now or each time a graph is launched.
using Work = std::function<cudaError_t()>;

class Runtime {
 public:
  static Runtime& instance();

  std::recursive_mutex mutex;
  // A fault of a kernel: every call answers with it until the device is reset.
  cudaError_t sticky = cudaSuccess;
  std::string load_error;             // the first reason why code could not be loaded
  std::map<int, std::size_t> limits;  // cudaDeviceSetLimit
  bool supervised = false;            // a worker asked for findings, so they are not printed
  std::vector<std::string> launched;  // different kernels, by first launch, since last asked
  std::map<void*, Block> blocks;
  std::unordered_map<const void*, std::unique_ptr<Binary>> binaries;  // by handle
  std::unordered_map<const void*, std::unique_ptr<Kernel>> kernels;   // by host function
  std::unordered_set<const void*> kernel_handles;
  std::unordered_map<const void*, Symbol> symbols;  // by host variable

  /// Loads the binary's PTX unless that was tried before.
  cudaError_t load(Binary& binary);
  /// By host function, or by handle. nullptr when there is none.
  Kernel* find_kernel(const void* function);
  /// Loads the kernel's code and fills its facts.
  cudaError_t prepare(Kernel& kernel);
  cudaError_t locate(const void* symbol, Device::Allocation& where);
  /// Memory of the program in the device's reach; nullptr when there is none left.
  void* allocate(std::size_t bytes, Block block);
  /// Forgets errors, and findings of the device.
  void reset();

 private:
  Runtime();
};

/// The calling thread's last error.
cudaError_t& last_error();
/// Says what the emulator cannot do: on stderr, begun with "attest: ", or in the process's record.
/// `kind` is load (code cannot be used) or call (a function is not emulated).
void complain(const std::string& what, std::string_view kind = "call");
/// Tells a finding: to the process's record, or on stderr. A worker asks for findings by itself.
void tell(const CheckerFinding& finding);

/// Runs one API function's body: one at a time, no exception gets out, the error is remembered.
/// Functions that do not touch the device answer even after a fault. `function` is the API's name:
/// whoever calls on behalf of several functions hands theirs on.
enum class AfterFault : std::uint8_t { refuses, answers };
template <typename Body>
cudaError_t call(Body body, AfterFault after = AfterFault::refuses,
                 const char* function = __builtin_FUNCTION()) noexcept {
  Runtime& runtime = Runtime::instance();
  const std::lock_guard lock(runtime.mutex);
  cudaError_t error = runtime.sticky;
  if (error == cudaSuccess || after == AfterFault::answers) {
    try {
      error = body(runtime);
    } catch (const std::bad_alloc&) {
      error = cudaErrorMemoryAllocation;
    } catch (const std::exception& caught) {
      complain(caught.what());
      error = cudaErrorUnknown;
    }
  }
  if (error != cudaSuccess) {
    last_error() = error;
    note_failure(function, error);
  }
  return error;
}

/// Answers a question of the program, when it says where the answer shall go.
template <typename Place, typename Value>
cudaError_t answer(Place* place, Value value) {
  if (place == nullptr) return cudaErrorInvalidValue;
  *place = static_cast<Place>(value);
  return cudaSuccess;
}

// The device that programs see: an sm_80. Kernels whose PTX is of a later architecture run as well,
// with the shared memory that theirs has (SharedLimits).
inline constexpr std::uint32_t kArchitecture = 80;
inline constexpr std::uint32_t kThreadsPerBlockMax = 1024, kBlockZMax = 64;
inline constexpr std::uint32_t kGridXMax = 0x7fffffff, kGridYZMax = 65535;
inline constexpr std::uint32_t kSharedPerBlock = 48 * 1024, kSharedReserved = 1024;
inline constexpr std::uint32_t kThreadsPerMultiprocessor = 2048, kBlocksPerMultiprocessor = 32;
inline constexpr std::uint32_t kRegisters = 65536, kMultiprocessors = 108, kWarp = 32;

/// Bytes of shared memory that an architecture has, and that a block may ask for.
struct SharedLimits {
  std::uint32_t per_multiprocessor, per_block;
};
SharedLimits shared_limits(std::uint32_t architecture);
/// Of the device, or of the kernel's architecture when that came later and has more.
SharedLimits shared_limits(const Kernel& kernel);

/// Blocks of `threads` that one multiprocessor holds at a time.
int blocks_per_multiprocessor(const Kernel& kernel, std::uint32_t threads, std::size_t dynamic);

// Streams (stream.cpp).
bool is_stream(cudaStream_t stream);
/// Does the work, or records it when the stream is being captured.
cudaError_t enqueue(cudaStream_t stream, const Work& work);

}  // namespace attest::emulator::runtime
