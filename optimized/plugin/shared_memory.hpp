// A piece of anonymous memory that two processes map and that can grow. Knows nothing of what is in
// it. Throws Error when the system refuses memory.
#pragma once
#include <cstddef>
#include <cstdint>

namespace attest {

class SharedMemory {
 public:
  enum class Access : std::uint8_t { read, read_write };

  /// New memory, at least `bytes` long.
  static SharedMemory create(const char* name, std::size_t bytes);
  /// Memory that another process made, by descriptor.
  static SharedMemory open(int descriptor, std::size_t bytes, Access access);

  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&&) = delete;
  ~SharedMemory();

  /// At least `bytes`, rounded up so that growth is rare. The mapping may move.
  void grow(std::size_t bytes);
  /// Maps again after the other side has grown it to `bytes`.
  void follow(std::size_t bytes);

  int descriptor() const { return descriptor_; }
  std::size_t size() const { return size_; }
  std::byte* data() const { return data_; }
  template <typename T>
  T& at(std::uint64_t offset) const {
    return *reinterpret_cast<T*>(data_ + offset);
  }

 private:
  SharedMemory(int descriptor, Access access) : descriptor_(descriptor), access_(access) {}
  void map(std::size_t bytes);

  int descriptor_ = -1;
  Access access_ = Access::read_write;
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace attest
