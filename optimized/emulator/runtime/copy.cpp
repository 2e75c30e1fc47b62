// Copies and fills. Everything on the device's side must lie in one live allocation; what the
// program says about the direction must be true, as a device insists.
#include <fmt/format.h>

#include <cstring>
#include <set>

#include "optimized/emulator/runtime/runtime.hpp"

namespace rt = attest::emulator::runtime;
using attest::emulator::Device;
using rt::call;
using rt::MemoryKind;
using rt::Runtime;

namespace {

enum class Side : std::uint8_t { host, device, either };

bool in_allocation(const void* address, std::size_t bytes) {
  const Device::Allocation found = Device::instance().find_allocation(address);
  if (found.base == nullptr) return false;
  const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(address) -
                                               static_cast<const std::byte*>(found.base));
  return bytes <= found.bytes - offset;
}

bool is_device_only(Runtime& runtime, const void* address) {
  const Device::Allocation found = Device::instance().find_allocation(address);
  if (found.base == nullptr) return false;
  const auto block = runtime.blocks.find(found.base);
  return block == runtime.blocks.end() || block->second.kind == MemoryKind::device;
}

bool may_touch(Runtime& runtime, const void* address, std::size_t bytes, Side side) {
  if (address == nullptr) return false;
  const bool on_device = Device::instance().find_allocation(address).base != nullptr;
  switch (side) {
    case Side::host:
      return !is_device_only(runtime, address);
    case Side::device:
      return in_allocation(address, bytes);
    case Side::either:
      return !on_device || in_allocation(address, bytes);
  }
  return false;
}

bool is_kind(cudaMemcpyKind kind) {
  return kind >= cudaMemcpyHostToHost && kind <= cudaMemcpyDefault;
}
Side target_side(cudaMemcpyKind kind) {
  if (kind == cudaMemcpyDefault) return Side::either;
  return kind == cudaMemcpyHostToDevice || kind == cudaMemcpyDeviceToDevice ? Side::device
                                                                            : Side::host;
}
Side source_side(cudaMemcpyKind kind) {
  if (kind == cudaMemcpyDefault) return Side::either;
  return kind == cudaMemcpyDeviceToHost || kind == cudaMemcpyDeviceToDevice ? Side::device
                                                                            : Side::host;
}

struct Plane {
  void* address;
  std::size_t pitch;
};
struct ConstPlane {
  const void* address;
  std::size_t pitch;
};

/// Bytes from the first to the last of `rows` rows; 0 when that overflows, which no allocation has.
std::size_t span_bytes(std::size_t pitch, std::size_t width, std::size_t rows) {
  std::size_t bytes = 0;
  if (__builtin_mul_overflow(pitch, rows - 1, &bytes) ||
      __builtin_add_overflow(bytes, width, &bytes)) {
    return ~std::size_t{0};
  }
  return bytes;
}

/// What leaves the device for the host is used there, whatever it is.
void judge_copy_out(Runtime& runtime, Plane target, ConstPlane source, std::size_t width,
                    std::size_t rows, const char* function) {
  if (runtime.supervised || !is_device_only(runtime, source.address)) return;
  const Device::Allocation found = Device::instance().find_allocation(target.address);
  const auto block = runtime.blocks.find(found.base);
  const bool managed = block != runtime.blocks.end() && block->second.kind == MemoryKind::managed;
  if (managed || is_device_only(runtime, target.address)) return;
  for (std::size_t row = 0; row < rows; ++row) {
    const std::string what = Device::instance().describe_unwritten(
        static_cast<const std::byte*>(source.address) + row * source.pitch, width);
    if (what.empty()) continue;
    static std::set<std::string> told;
    const std::string sentence = fmt::format("{} to the host: {}", function, what);
    if (told.insert(sentence).second) rt::tell({.kind = "initcheck", .what = sentence});
    return;
  }
}

cudaError_t copy_rows(Runtime& runtime, Plane target, ConstPlane source, std::size_t width,
                      std::size_t rows, cudaMemcpyKind kind, const char* function) {
  if (!is_kind(kind)) return cudaErrorInvalidMemcpyDirection;
  if (width == 0 || rows == 0) return cudaSuccess;
  if (rows > 1 && (width > target.pitch || width > source.pitch)) return cudaErrorInvalidPitchValue;
  if (!may_touch(runtime, target.address, span_bytes(target.pitch, width, rows),
                 target_side(kind)) ||
      !may_touch(runtime, source.address, span_bytes(source.pitch, width, rows),
                 source_side(kind))) {
    return cudaErrorInvalidValue;
  }
  judge_copy_out(runtime, target, source, width, rows, function);
  for (std::size_t row = 0; row < rows; ++row) {
    std::memmove(static_cast<std::byte*>(target.address) + row * target.pitch,
                 static_cast<const std::byte*>(source.address) + row * source.pitch, width);
    Device::instance().copy_written(
        static_cast<std::byte*>(target.address) + row * target.pitch,
        static_cast<const std::byte*>(source.address) + row * source.pitch, width);
  }
  return cudaSuccess;
}

cudaError_t fill_rows(Plane target, int value, std::size_t width, std::size_t rows) {
  if (width == 0 || rows == 0) return cudaSuccess;
  if (rows > 1 && width > target.pitch) return cudaErrorInvalidPitchValue;
  if (!in_allocation(target.address, span_bytes(target.pitch, width, rows))) {
    return cudaErrorInvalidValue;
  }
  for (std::size_t row = 0; row < rows; ++row) {
    std::memset(static_cast<std::byte*>(target.address) + row * target.pitch, value, width);
    Device::instance().mark_written(static_cast<std::byte*>(target.address) + row * target.pitch,
                                    width);
  }
  return cudaSuccess;
}

/// Runs `work` in the stream as one API call. Work may run again, when it was captured.
cudaError_t in_stream(cudaStream_t stream, const rt::Work& work,
                      const char* function = __builtin_FUNCTION()) {
  return call(
      [&](Runtime&) {
        if (!rt::is_stream(stream)) return cudaErrorInvalidResourceHandle;
        return rt::enqueue(stream, work);
      },
      rt::AfterFault::refuses, function);
}

cudaError_t copy(Plane target, ConstPlane source, std::size_t width, std::size_t rows,
                 cudaMemcpyKind kind, cudaStream_t stream,
                 const char* function = __builtin_FUNCTION()) {
  return in_stream(
      stream,
      [=] { return copy_rows(Runtime::instance(), target, source, width, rows, kind, function); },
      function);
}

cudaError_t copy_volume(const cudaMemcpy3DParms& parameters, cudaStream_t stream,
                        const char* function = __builtin_FUNCTION()) {
  if (parameters.srcArray != nullptr || parameters.dstArray != nullptr) {
    rt::complain("CUDA arrays are not emulated; use pitched memory");
    return call([](Runtime&) { return cudaErrorNotSupported; });
  }
  const auto at = [](const cudaPitchedPtr& pointer, cudaPos position, std::size_t z) {
    return static_cast<std::byte*>(pointer.ptr) +
           ((position.z + z) * pointer.ysize + position.y) * pointer.pitch + position.x;
  };
  for (std::size_t z = 0; z < parameters.extent.depth; ++z) {
    const cudaError_t error =
        copy({at(parameters.dstPtr, parameters.dstPos, z), parameters.dstPtr.pitch},
             {at(parameters.srcPtr, parameters.srcPos, z), parameters.srcPtr.pitch},
             parameters.extent.width, parameters.extent.height, parameters.kind, stream, function);
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

cudaError_t fill_volume(cudaPitchedPtr target, int value, cudaExtent extent, cudaStream_t stream,
                        const char* function = __builtin_FUNCTION()) {
  const auto work = [=] {
    for (std::size_t z = 0; z < extent.depth; ++z) {
      const Plane slice{static_cast<std::byte*>(target.ptr) + z * target.ysize * target.pitch,
                        target.pitch};
      const cudaError_t error = fill_rows(slice, value, extent.width, extent.height);
      if (error != cudaSuccess) return error;
    }
    return cudaSuccess;
  };
  return in_stream(stream, work, function);
}

/// The part of a variable that a copy names.
cudaError_t part_of(const void* symbol, std::size_t bytes, std::size_t offset, std::byte** part,
                    const char* function = __builtin_FUNCTION()) {
  return call(
      [&](Runtime& runtime) {
        Device::Allocation where;
        const cudaError_t error = runtime.locate(symbol, where);
        if (error != cudaSuccess) return error;
        if (offset > where.bytes || bytes > where.bytes - offset) return cudaErrorInvalidValue;
        *part = static_cast<std::byte*>(where.base) + offset;
        return cudaSuccess;
      },
      rt::AfterFault::refuses, function);
}

cudaError_t copy_to_symbol(const void* symbol, const void* source, std::size_t bytes,
                           std::size_t offset, cudaMemcpyKind kind, cudaStream_t stream,
                           const char* function = __builtin_FUNCTION()) {
  std::byte* part = nullptr;
  const cudaError_t error = part_of(symbol, bytes, offset, &part, function);
  if (error != cudaSuccess) return error;
  return copy({part, bytes}, {source, bytes}, bytes, 1, kind, stream, function);
}

cudaError_t copy_from_symbol(void* target, const void* symbol, std::size_t bytes,
                             std::size_t offset, cudaMemcpyKind kind, cudaStream_t stream,
                             const char* function = __builtin_FUNCTION()) {
  std::byte* part = nullptr;
  const cudaError_t error = part_of(symbol, bytes, offset, &part, function);
  if (error != cudaSuccess) return error;
  return copy({target, bytes}, {part, bytes}, bytes, 1, kind, stream, function);
}

}  // namespace

extern "C" {

cudaError_t cudaMemcpyAsync(void* target, const void* source, std::size_t bytes,
                            cudaMemcpyKind kind, cudaStream_t stream) {
  return copy({target, bytes}, {source, bytes}, bytes, 1, kind, stream);
}
cudaError_t cudaMemcpy(void* target, const void* source, std::size_t bytes, cudaMemcpyKind kind) {
  return copy({target, bytes}, {source, bytes}, bytes, 1, kind, nullptr);
}
cudaError_t cudaMemcpyPeerAsync(void* target, int target_device, const void* source,
                                int source_device, std::size_t bytes, cudaStream_t stream) {
  if (target_device != 0 || source_device != 0) {
    return call([](Runtime&) { return cudaErrorInvalidDevice; });
  }
  return cudaMemcpyAsync(target, source, bytes, cudaMemcpyDeviceToDevice, stream);
}
cudaError_t cudaMemcpyPeer(void* target, int target_device, const void* source, int source_device,
                           std::size_t bytes) {
  return cudaMemcpyPeerAsync(target, target_device, source, source_device, bytes, nullptr);
}

cudaError_t cudaMemcpy2DAsync(void* target, std::size_t target_pitch, const void* source,
                              std::size_t source_pitch, std::size_t width, std::size_t height,
                              cudaMemcpyKind kind, cudaStream_t stream) {
  return copy({target, target_pitch}, {source, source_pitch}, width, height, kind, stream);
}
cudaError_t cudaMemcpy2D(void* target, std::size_t target_pitch, const void* source,
                         std::size_t source_pitch, std::size_t width, std::size_t height,
                         cudaMemcpyKind kind) {
  return copy({target, target_pitch}, {source, source_pitch}, width, height, kind, nullptr);
}
cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms* parameters, cudaStream_t stream) {
  if (parameters == nullptr) return call([](Runtime&) { return cudaErrorInvalidValue; });
  return copy_volume(*parameters, stream);
}
cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms* parameters) {
  if (parameters == nullptr) return call([](Runtime&) { return cudaErrorInvalidValue; });
  return copy_volume(*parameters, nullptr);
}

cudaError_t cudaMemsetAsync(void* target, int value, std::size_t bytes, cudaStream_t stream) {
  return in_stream(stream, [=] { return fill_rows({target, bytes}, value, bytes, 1); });
}
cudaError_t cudaMemset(void* target, int value, std::size_t bytes) {
  return in_stream(nullptr, [=] { return fill_rows({target, bytes}, value, bytes, 1); });
}
cudaError_t cudaMemset2DAsync(void* target, std::size_t pitch, int value, std::size_t width,
                              std::size_t height, cudaStream_t stream) {
  return in_stream(stream, [=] { return fill_rows({target, pitch}, value, width, height); });
}
cudaError_t cudaMemset2D(void* target, std::size_t pitch, int value, std::size_t width,
                         std::size_t height) {
  return in_stream(nullptr, [=] { return fill_rows({target, pitch}, value, width, height); });
}
cudaError_t cudaMemset3DAsync(cudaPitchedPtr target, int value, cudaExtent extent,
                              cudaStream_t stream) {
  return fill_volume(target, value, extent, stream);
}
cudaError_t cudaMemset3D(cudaPitchedPtr target, int value, cudaExtent extent) {
  return fill_volume(target, value, extent, nullptr);
}

cudaError_t cudaMemcpyToSymbolAsync(const void* symbol, const void* source, std::size_t bytes,
                                    std::size_t offset, cudaMemcpyKind kind, cudaStream_t stream) {
  return copy_to_symbol(symbol, source, bytes, offset, kind, stream);
}
cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* source, std::size_t bytes,
                               std::size_t offset, cudaMemcpyKind kind) {
  return copy_to_symbol(symbol, source, bytes, offset, kind, nullptr);
}
cudaError_t cudaMemcpyFromSymbolAsync(void* target, const void* symbol, std::size_t bytes,
                                      std::size_t offset, cudaMemcpyKind kind,
                                      cudaStream_t stream) {
  return copy_from_symbol(target, symbol, bytes, offset, kind, stream);
}
cudaError_t cudaMemcpyFromSymbol(void* target, const void* symbol, std::size_t bytes,
                                 std::size_t offset, cudaMemcpyKind kind) {
  return copy_from_symbol(target, symbol, bytes, offset, kind, nullptr);
}

cudaError_t cudaGetSymbolAddress(void** address, const void* symbol) {
  return call([&](Runtime& runtime) {
    Device::Allocation where;
    const cudaError_t error = runtime.locate(symbol, where);
    *address = where.base;
    return error;
  });
}
cudaError_t cudaGetSymbolSize(std::size_t* bytes, const void* symbol) {
  return call([&](Runtime& runtime) {
    Device::Allocation where;
    const cudaError_t error = runtime.locate(symbol, where);
    *bytes = where.bytes;
    return error;
  });
}

}  // extern "C"
