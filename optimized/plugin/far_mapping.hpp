// Far mapping: address space far larger than memory, of which only what is touched takes room.
#pragma once
#include <cstddef>

namespace attest {

class FarMapping {
 public:
  /// Reads as zeros until it is written. Empty (data() is null) where the system refuses it.
  explicit FarMapping(std::size_t bytes);
  ~FarMapping();
  FarMapping(FarMapping&& other) noexcept;
  FarMapping& operator=(FarMapping&&) = delete;

  std::byte* data() const { return data_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

/// Whether the system gives address space without memory behind it, as much as a call may need.
bool has_far_memory();

}  // namespace attest
