// Allocations with red zones and quarantine.
#include "optimized/emulator/engine/memory.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "optimized/emulator/engine/written_bits.hpp"

namespace attest::emulator {
namespace {

constexpr std::size_t kRedZone = 256;
constexpr std::size_t kQuarantineBytes = std::size_t{256} << 20;
// Memory above this size is given back to the host at once: only its address range is remembered.
constexpr std::size_t kQuarantineOneBytes = std::size_t{64} << 20;

const char* const kHeapName = "device malloc";

bool is_mapped(u64 address) {
  const u64 page = u64(sysconf(_SC_PAGESIZE));
  return msync(reinterpret_cast<void*>(address / page * page), page, MS_ASYNC) == 0;
}

}  // namespace

Memory::~Memory() {
  for (auto& [base, entry] : live_) std::free(entry.block);
  for (auto& [base, entry] : freed_) std::free(entry.block);
}

void* Memory::allocate(std::size_t bytes, std::string name, std::size_t alignment) {
  alignment = std::max<std::size_t>(alignment, 256);
  // More than the host has would end the process when it is poisoned below.
  const u64 host_bytes = u64(sysconf(_SC_PHYS_PAGES)) * u64(sysconf(_SC_PAGESIZE));
  if (bytes > host_bytes) return nullptr;
  const std::size_t room = std::max<std::size_t>(bytes, 1);
  const std::size_t total = (room + 2 * kRedZone + 2 * alignment - 1) / alignment * alignment;
  void* block = std::aligned_alloc(alignment, total);
  if (block == nullptr) return nullptr;
  const u64 begin =
      (reinterpret_cast<u64>(block) + kRedZone + alignment - 1) / alignment * alignment;
  std::memset(block, 0xff, total);
  const std::scoped_lock lock(mutex_);
  // The host may hand out again what a trimmed quarantine entry described.
  // Entries do not overlap, so those that meet the new range are neighbours.
  for (auto it = freed_.lower_bound(begin + room); it != freed_.begin();) {
    if (std::prev(it)->second.whole.end <= begin) break;
    --it;
    if (it->second.block == nullptr) it = freed_.erase(it);
  }
  const Range range{begin, begin + bytes};
  Entry entry;
  entry.whole = entry.accessible = range, entry.block = block, entry.name = std::move(name);
  if (entry.name.empty()) entry.bits.reset(static_cast<u8*>(std::calloc(room / 8 + kBitRoom, 1)));
  live_.emplace(begin, std::move(entry));
  bytes_in_use_ += bytes;
  return reinterpret_cast<void*>(begin);
}

bool Memory::adopt(u64 begin, std::size_t bytes) {
  const std::scoped_lock lock(mutex_);
  const auto next = live_.lower_bound(begin);
  const bool before = next != live_.begin() && std::prev(next)->second.whole.end > begin;
  if (before || (next != live_.end() && next->first < begin + bytes)) return false;
  const Range range{begin, begin + bytes};
  live_[begin].whole = live_[begin].accessible = range;
  bytes_in_use_ += bytes;
  return true;
}

bool Memory::is_the_hosts(u64 address) const {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return false;
  const Entry* entry = entry_of(address);
  return entry != nullptr && entry->block == nullptr;
}

void* Memory::allocate_heap(std::size_t bytes) {
  // cudaLimitMallocHeapSize, unless raised (CUDA programming guide).
  constexpr std::size_t kHeapBytes = std::size_t{8} << 20;
  if (bytes > kHeapBytes || heap_bytes_.fetch_add(bytes) + bytes > kHeapBytes) {
    if (bytes <= kHeapBytes) heap_bytes_ -= bytes;
    return nullptr;
  }
  void* place = allocate(bytes, kHeapName);
  if (place == nullptr) heap_bytes_ -= bytes;
  return place;
}

bool Memory::release_heap(u64 address) {
  std::size_t bytes = 0;
  {
    const std::scoped_lock lock(mutex_);
    const auto it = live_.find(address);
    if (it == live_.end() || it->second.name != kHeapName) return false;
    bytes = it->second.whole.end - it->second.whole.begin;
  }
  if (!release(reinterpret_cast<void*>(address))) return false;
  heap_bytes_ -= bytes;
  return true;
}

bool Memory::release(void* address) {
  const std::scoped_lock lock(mutex_);
  const auto it = live_.find(reinterpret_cast<u64>(address));
  if (it == live_.end()) return false;
  Entry entry = std::move(it->second);
  live_.erase(it);
  const std::size_t bytes = entry.whole.end - entry.whole.begin;
  bytes_in_use_ -= bytes;
  if (bytes > kQuarantineOneBytes) {
    std::free(entry.block);
    entry.block = nullptr;
    entry.bits.reset();
  } else {
    bytes_quarantined_ += bytes;
  }
  freed_order_.push_back(entry.whole.begin);
  freed_.insert_or_assign(entry.whole.begin, std::move(entry));
  trim_quarantine();
  return true;
}

void Memory::trim_quarantine() {
  constexpr std::size_t kRemembered = 4096;
  while (!freed_order_.empty() &&
         (bytes_quarantined_ > kQuarantineBytes || freed_order_.size() > kRemembered)) {
    const auto it = freed_.find(freed_order_.front());
    freed_order_.pop_front();
    if (it == freed_.end()) continue;
    if (it->second.block != nullptr) {
      bytes_quarantined_ -= it->second.whole.end - it->second.whole.begin;
      std::free(it->second.block);
    }
    freed_.erase(it);
  }
}

bool Memory::restrict_access(u64 begin, std::size_t bytes) {
  const std::scoped_lock lock(mutex_);
  auto it = live_.upper_bound(begin);
  if (it == live_.begin()) return false;
  Entry& entry = std::prev(it)->second;
  if (begin < entry.whole.begin || begin > entry.whole.end || entry.whole.end - begin < bytes)
    return false;
  entry.accessible = {begin, begin + bytes};
  return true;
}

const Memory::Entry* Memory::entry_of(u64 address) const {
  auto it = live_.upper_bound(address);
  if (it == live_.begin()) return nullptr;
  const Entry& entry = std::prev(it)->second;
  return address < entry.whole.end || address == entry.whole.begin ? &entry : nullptr;
}

std::optional<Memory::Range> Memory::find(u64 address) const {
  const std::scoped_lock lock(mutex_);
  const Entry* entry = entry_of(address);
  return entry ? std::optional(entry->whole) : std::nullopt;
}

std::optional<Memory::Range> Memory::find_accessible(u64 address) const {
  const std::scoped_lock lock(mutex_);
  const Entry* entry = entry_of(address);
  return entry && entry->accessible.contains(address) ? std::optional(entry->accessible)
                                                      : std::nullopt;
}

Memory::Written Memory::written_at(u64 address) const {
  const std::scoped_lock lock(mutex_);
  const Entry* entry = entry_of(address);
  if (entry == nullptr) return {};
  return {entry->whole.begin, entry->whole.end - entry->whole.begin, entry->bits.get()};
}

void Memory::set_bits(Entry& entry, u64 begin, u64 end, bool written) {
  const u64 bytes = entry.whole.end - entry.whole.begin;
  if (entry.bits == nullptr) {
    if (written) return;
    entry.bits.reset(static_cast<u8*>(std::malloc(bytes / 8 + kBitRoom)));
    if (entry.bits == nullptr) return;
    std::memset(entry.bits.get(), 0xff, bytes / 8 + kBitRoom);
  }
  fill_bits(entry.bits.get(), begin - entry.whole.begin, end - entry.whole.begin, written);
}

void Memory::mark_written(u64 address, std::size_t bytes, bool written) {
  const std::scoped_lock lock(mutex_);
  const Entry* found = entry_of(address);
  if (found == nullptr) return;
  Entry& entry = live_.at(found->whole.begin);
  entry.stored.erase(entry.stored.lower_bound(address), entry.stored.lower_bound(address + bytes));
  set_bits(entry, address, std::min<u64>(address + bytes, entry.whole.end), written);
}

void Memory::copy_written(u64 to, u64 from, std::size_t bytes) {
  const std::scoped_lock lock(mutex_);
  const Entry *target = entry_of(to), *source = entry_of(from);
  if (target == nullptr) return;
  Entry& entry = live_.at(target->whole.begin);
  const u64 end = std::min<u64>(to + bytes, entry.whole.end);
  if (source == nullptr || source->bits == nullptr) return set_bits(entry, to, end, true);
  const std::map<u64, std::pair<u64, std::string>> stored(source->stored.lower_bound(from),
                                                          source->stored.lower_bound(from + bytes));
  for (const auto& [begin, range] : stored)
    entry.stored.insert_or_assign(begin - from + to,
                                  std::pair(range.first - from + to, range.second));
  // Runs of equal bits; read before anything is set, since the two may be one allocation.
  std::vector<u8> bits(bytes);
  for (std::size_t i = 0; i < bytes; ++i) {
    const u64 at = from - source->whole.begin + i;
    bits[i] = (source->bits.get()[at / 8] >> (at % 8)) & 1;
  }
  for (u64 i = 0; i < end - to;) {
    u64 next = i + 1;
    while (next < end - to && bits[next] == bits[i]) ++next;
    set_bits(entry, to + i, to + next, bits[i] != 0);
    i = next;
  }
}

void Memory::note_stored(u64 begin, u64 end, const std::string& who) {
  const Entry* found = entry_of(begin);
  if (found == nullptr) return;
  auto& stored = live_.at(found->whole.begin).stored;
  auto at = stored.upper_bound(begin);
  if (at != stored.begin()) {  // goes on where the same one left off, or lies within
    const auto before = std::prev(at);
    if (before->second.first >= begin && before->second.second == who) {
      before->second.first = std::max(before->second.first, end);
      return;
    }
  }
  constexpr std::size_t kMost = 1 << 16;  // beyond, whoever copies more says "never written"
  if (stored.size() < kMost) stored.insert_or_assign(begin, std::pair(end, who));
}

std::string Memory::storer_of(u64 address) const {
  const std::scoped_lock lock(mutex_);
  const Entry* found = entry_of(address);
  if (found == nullptr) return {};
  const auto after = found->stored.upper_bound(address);
  if (after == found->stored.begin()) return {};
  const auto& [end, who] = std::prev(after)->second;
  return address < end ? who : std::string{};
}

std::string Memory::describe(u64 address, std::size_t bytes) const {
  const std::scoped_lock lock(mutex_);
  const auto called = [](const Entry& e) {
    const u64 size = e.whole.end - e.whole.begin;
    return e.name.empty() ? fmt::format("a {}-byte allocation", size)
                          : fmt::format("the {}-byte variable '{}'", size, e.name);
  };
  if (address < 4096) return "the address is null or nearly so";
  if (const Entry* e = entry_of(address); e != nullptr && address < e->whole.end) {
    const Range& a = e->accessible;
    if (address < a.begin || address >= a.end) {
      const bool before = address < a.begin;
      return fmt::format("{} bytes {} the {} bytes of {} that this launch may touch",
                         before ? a.begin - address : address - a.end,
                         before ? "before" : "past the end of", a.end - a.begin, called(*e));
    }
    return fmt::format("the access begins {} bytes before the end of {} and is {} bytes wide",
                       a.end - address, called(*e), bytes);
  }
  for (const auto& [base, e] : freed_) {
    if (e.whole.contains(address)) {
      return fmt::format("{} bytes into {} that was freed", address - e.whole.begin, called(e));
    }
  }
  // The nearest live allocation, if it is near at all.
  const Entry* nearest = nullptr;
  u64 distance = u64{1} << 20;
  auto it = live_.upper_bound(address);
  if (it != live_.end() && it->second.whole.begin - address < distance) {
    nearest = &it->second, distance = it->second.whole.begin - address;
  }
  if (it != live_.begin()) {
    const Entry& below = std::prev(it)->second;
    if (address - below.whole.end < distance) {
      return fmt::format("{} bytes past the end of {}", address - below.whole.end, called(below));
    }
  }
  if (nearest != nullptr) return fmt::format("{} bytes before {}", distance, called(*nearest));
  if (address < kSharedWindow && is_mapped(address))
    return "this is host memory, which a kernel may not touch";
  return "no allocation is near";
}

}  // namespace attest::emulator
