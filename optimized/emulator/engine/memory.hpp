// The emulated device's global memory: allocations in ordinary host memory, each between red zones,
// with a memory of what was freed. Knows addresses; does not know who accesses them.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "optimized/emulator/engine/machine.hpp"

namespace attest::emulator {

class Memory {
 public:
  Memory() = default;
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  struct Range {
    u64 begin = 0, end = 0;
    bool contains(u64 address) const { return address >= begin && address < end; }
  };

  /// Poisoned with 0xff. nullptr when the host has no memory left. `alignment` is at least 256.
  /// What has a name, as a variable of a module, counts as written.
  void* allocate(std::size_t bytes, std::string name = {}, std::size_t alignment = 256);
  bool release(void* address);
  /// Host memory that kernels may touch from now on; it stays the host's. False when it overlaps
  /// with what they may touch already.
  bool adopt(u64 begin, std::size_t bytes);
  /// Whether the address lies in such memory; false when somebody holds the lock.
  bool is_the_hosts(u64 address) const;
  /// What kernels call malloc and free. nullptr when the heap is used up; false when malloc did not
  /// give the address.
  void* allocate_heap(std::size_t bytes);
  bool release_heap(u64 address);
  bool restrict_access(u64 begin, std::size_t bytes);
  /// The whole live allocation that contains the address.
  std::optional<Range> find(u64 address) const;
  /// The part of it that kernels may touch.
  std::optional<Range> find_accessible(u64 address) const;
  std::size_t bytes_in_use() const { return bytes_in_use_; }

  /// Which bytes of an allocation hold something: bit i of `bits` is byte i. nullptr: all do.
  struct Written {
    u64 begin = 0, bytes = 0;
    u8* bits = nullptr;
  };
  /// Of the allocation that contains the address; empty when there is none. The bits live as long
  /// as the allocation.
  Written written_at(u64 address) const;
  /// Says that the bytes were written, or hold nothing that anybody wrote. Bytes outside of
  /// allocations are passed over.
  void mark_written(u64 address, std::size_t bytes, bool written);
  /// What was copied is as written as its source; host memory counts as written.
  void copy_written(u64 to, u64 from, std::size_t bytes);
  /// Somebody stored values there that nothing defines. `who` is asked once for each `by`.
  template <class Who>
  void note_undefined(u64 address, std::size_t bytes, const void* by, const Who& who) {
    const std::scoped_lock lock(mutex_);
    if (stored_by_ != by) stored_by_ = by, storer_ = who();
    note_stored(address, address + bytes, storer_);
  }
  /// Who that was, of a byte; empty: nobody wrote it at all.
  std::string storer_of(u64 address) const;

  /// "4 bytes past the end of a 4096-byte allocation": where an address lies, for a message.
  std::string describe(u64 address, std::size_t bytes) const;

 private:
  struct Entry {
    Range whole, accessible;
    void* block = nullptr;  // what the host allocated
    std::string name;       // of a module variable
    // Where undefined values were stored: from, to, by whom.
    std::map<u64, std::pair<u64, std::string>> stored;
    std::unique_ptr<u8, void (*)(void*)> bits{nullptr, std::free};  // of Written
  };
  const Entry* entry_of(u64 address) const;
  void set_bits(Entry& entry, u64 begin, u64 end, bool written);
  void note_stored(u64 begin, u64 end, const std::string& who);
  void trim_quarantine();

  mutable std::mutex mutex_;
  std::map<u64, Entry> live_;   // by first address
  std::map<u64, Entry> freed_;  // quarantined: the memory is not reused yet
  std::deque<u64> freed_order_;
  std::atomic<std::size_t> heap_bytes_{0};
  const void* stored_by_ = nullptr;  // the last who stored undefined values
  std::string storer_;
  std::size_t bytes_in_use_ = 0, bytes_quarantined_ = 0;
};

}  // namespace attest::emulator
