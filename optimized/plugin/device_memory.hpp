// Memory on the device a plugin computes on, in blocks with a guard zone on both sides. What is in
// the guard zones, and whether they are intact, is the business of placed_tensor.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <stdexcept>
#include <vector>

#include "optimized/plugin/cuda_runtime.hpp"
#include "optimized/plugin/far_mapping.hpp"
#include "optimized/plugin/protocol.hpp"

namespace attest {

/// The device has no room: a fault of kind memory.
struct OutOfMemory : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// `bytes` at `data`, with `front` and `back` readable bytes around them; or several such pieces,
/// `pitch` bytes from one to the next, with nothing between them that anybody looks at.
struct Block {
  std::byte* data = nullptr;
  std::size_t front = 0, bytes = 0, back = 0;
  std::size_t pieces = 1, pitch = 0;
  std::size_t piece() const { return front + bytes + back; }
  /// What an image of the block holds: one piece after the other.
  std::size_t total() const { return pieces * piece(); }
  /// From the first byte of `data` to behind the last one.
  std::size_t span() const { return (pieces - 1) * pitch + bytes; }
};

class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;
  /// Aligned to `alignment`, a power of two, at most 256.
  virtual Block acquire(std::size_t bytes, std::size_t alignment, TensorName name) = 0;
  /// Pieces of `bytes`, `pitch` bytes apart, which is a multiple of kFarAlignment. Only what is
  /// touched takes room.
  virtual Block acquire_far(std::size_t bytes, std::size_t pieces, std::size_t pitch,
                            TensorName name) = 0;
  /// `image` covers the whole block, guard zones included.
  virtual void upload(const Block& block, const std::byte* image) = 0;
  virtual void download(const Block& block, std::byte* image) = 0;
  /// Called when everything is in place, before the plugin runs. What the block holds means
  /// something, or (`filled` false) is there only to be overwritten.
  virtual void seal(const Block& block, bool filled) = 0;
  /// Gives back everything acquired since the last call.
  virtual void release_all() = 0;
};

/// Host memory between two fences of inaccessible pages. The tensor's end touches the upper one, up
/// to its alignment, so that reading one element too many is seen at once.
inline constexpr std::size_t kFarAlignment = 64;

class HostMemory final : public DeviceMemory {
 public:
  HostMemory();
  ~HostMemory() override;
  Block acquire(std::size_t bytes, std::size_t alignment, TensorName name) override;
  Block acquire_far(std::size_t bytes, std::size_t pieces, std::size_t pitch,
                    TensorName name) override;
  void upload(const Block& block, const std::byte* image) override;
  void download(const Block& block, std::byte* image) override;
  void seal(const Block&, bool) override {}
  void release_all() override;

 private:
  struct Region {
    std::byte* begin;  // between the fences
    std::size_t bytes;
  };
  std::size_t page_;
  std::vector<Region> in_use_;
  std::vector<FarMapping> far_;
  std::map<std::size_t, std::vector<Region>> spare_;  // by bytes: kept, since mapping is slow
  std::size_t spare_bytes_ = 0;
};

/// Memory of the loaded CUDA runtime. Each block is an allocation of its own, kept for later calls.
/// On the emulator kernels may touch the tensor's bytes of it only; on a GPU guard zones are wide
/// enough to hold a stray row.
class CudaMemory final : public DeviceMemory {
 public:
  explicit CudaMemory(const CudaRuntime& runtime) : runtime_(runtime) {}
  ~CudaMemory() override;
  Block acquire(std::size_t bytes, std::size_t alignment, TensorName name) override;
  /// The emulator takes it for memory of the host that kernels may touch. Throws OutOfMemory on a
  /// GPU.
  Block acquire_far(std::size_t bytes, std::size_t pieces, std::size_t pitch,
                    TensorName name) override;
  void upload(const Block& block, const std::byte* image) override;
  void download(const Block& block, std::byte* image) override;
  void seal(const Block& block, bool filled) override;
  void release_all() override;

 private:
  struct Allocation {
    void* base;
    std::size_t bytes;
  };
  const CudaRuntime& runtime_;
  std::vector<Allocation> in_use_;
  std::vector<FarMapping> far_;
  std::map<std::size_t, std::vector<void*>> spare_;
  std::size_t spare_bytes_ = 0;
};

}  // namespace attest
