// One tensor on the device, surrounded and interspersed with memory that no correct subject uses.
// The image of the whole block is kept, so that after the call every byte that was not to be
// written can be compared. Knows nothing of which call it belongs to.
#pragma once
#include <dlpack/dlpack.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "optimized/plugin/device_memory.hpp"
#include "optimized/plugin/fault_kinds.hpp"
#include "optimized/plugin/protocol.hpp"

namespace attest {

struct TensorFault {
  FaultKind kind;
  std::string what;
};

class PlacedTensor {
 public:
  /// Lays the tensor out, fills it and what surrounds it, and uploads it.
  PlacedTensor(const TensorSpec& spec, const std::byte* request, Poison poison,
               DeviceMemory& memory);

  const TensorSpec& spec() const { return spec_; }
  /// How far `address` lies from the tensor's bytes: 0 inside, negative before the first.
  std::int64_t distance_to(std::uint64_t address) const;
  void seal(DeviceMemory& memory) const { memory.seal(block_, spec_.role != Role::output); }
  /// Valid while this object is.
  DLTensor view(DLDevice device);

  /// Downloads, copies what was to be written into `reply` (rows that were not to be written come
  /// back as zeros), and compares the rest. Damage to the surroundings comes before unwritten
  /// elements.
  std::optional<TensorFault> examine(std::byte* reply, DeviceMemory& memory);

 private:
  using Place = std::array<std::int64_t, 4>;

  Block acquire(DeviceMemory& memory) const;
  Block acquire_far(DeviceMemory& memory);          // changes the strides
  std::size_t offset_of(const Place& place) const;  // in the image
  std::int64_t rows_reachable(std::int64_t batch) const;
  std::int64_t columns_reachable(std::int64_t batch) const;
  void fill(const std::byte* payload, Poison poison);
  std::optional<TensorFault> first_damage(const std::byte* found) const;
  std::optional<TensorFault> collect(std::byte* answer, std::byte* found) const;
  std::string print(const Place& place) const;

  TensorSpec spec_;
  std::size_t width_;  // bytes of an element
  const std::int32_t* row_limits_ = nullptr;
  const std::int32_t* column_limits_ = nullptr;
  std::optional<std::size_t> far_axis_;  // along which the block is in pieces
  Place strides_{};                      // in elements
  Block block_;
  std::vector<std::byte> image_;
  std::array<std::int64_t, 4> shown_extent_{}, shown_strides_{};
};

}  // namespace attest
