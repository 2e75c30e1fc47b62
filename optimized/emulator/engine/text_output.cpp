// What kernels say: printf, in order of threads, and failed assertions. A launch prints at most as
// much as CUDA's default buffer holds.
#include <fmt/format.h>

#include <cstdio>
#include <cstring>

#include "optimized/emulator/engine/block.hpp"

namespace attest::emulator {
namespace {

constexpr std::size_t kPrintedMax = 1 << 20;  // cudaLimitPrintfFifoSize
constexpr std::size_t kTextMax = 4096;        // of one string

/// Host address of generic memory, for one lane; 0 after a fault.
u64 resolve(const Op& op, Warp& w, u32 lane, u64 address, u32 bytes) {
  const u32 mask = w.mask;
  u64 at[kLanes] = {};
  at[lane] = address;
  w.mask = 1u << lane;
  const bool found = find_places(op, w, at, bytes, Space::generic);
  w.mask = mask;
  return found ? at[lane] : 0;
}

/// A zero-terminated string in device memory. False after a fault.
bool read_text(const Op& op, Warp& w, u32 lane, u64 address, std::string& text) {
  text.clear();
  while (text.size() < kTextMax) {
    const u64 place = resolve(op, w, lane, address + text.size(), 1);
    if (place == 0) return false;
    const char c = *reinterpret_cast<const char*>(place);
    if (c == 0) break;
    text += c;
  }
  return true;
}

/// Formats one thread's printf. False after a fault.
bool format(const Op& op, Warp& w, u32 lane, const std::string& pattern, u64 arguments,
            std::string& out) {
  u64 offset = 0;
  for (std::size_t i = 0; i < pattern.size();) {
    if (pattern[i] != '%') {
      out += pattern[i++];
      continue;
    }
    std::size_t end = i + 1;
    while (end < pattern.size() && std::strchr("-+ #0123456789.*hljztL", pattern[end])) ++end;
    if (end >= pattern.size()) {
      out += pattern.substr(i);
      break;
    }
    const char conversion = pattern[end];
    std::string flags = pattern.substr(i, end - i);
    i = end + 1;
    if (conversion == '%') {
      out += '%';
      continue;
    }
    const bool wide_integer = flags.find('l') != flags.npos || flags.find('j') != flags.npos ||
                              flags.find('z') != flags.npos || flags.find('t') != flags.npos;
    const bool is_float = std::strchr("aAeEfFgG", conversion) != nullptr;
    const bool is_wide = is_float || conversion == 's' || conversion == 'p' || wide_integer;
    std::erase_if(flags, [](char c) { return std::strchr("hljztL", c) != nullptr; });
    for (std::size_t star; (star = flags.find('*')) != flags.npos;) {
      const u64 place = resolve(op, w, lane, arguments + offset, 4);
      if (place == 0) return false;
      flags.replace(star, 1, std::to_string(*reinterpret_cast<const s32*>(place)));
      offset += 4;
    }
    const u64 bytes = is_wide ? 8 : 4;
    offset = (offset + bytes - 1) / bytes * bytes;
    const u64 place = resolve(op, w, lane, arguments + offset, u32(bytes));
    if (place == 0) return false;
    offset += bytes;
    u64 value = 0;
    std::memcpy(&value, reinterpret_cast<const void*>(place), bytes);
    char buffer[512];
    if (conversion == 's') {
      std::string text;
      if (!read_text(op, w, lane, value, text)) return false;
      std::snprintf(buffer, sizeof buffer, (flags + "s").c_str(), text.c_str());
    } else if (is_float) {
      std::snprintf(buffer, sizeof buffer, (flags + conversion).c_str(),
                    __builtin_bit_cast(double, value));
    } else if (conversion == 'p') {
      std::snprintf(buffer, sizeof buffer, (flags + "p").c_str(), reinterpret_cast<void*>(value));
    } else if (conversion == 'c') {
      std::snprintf(buffer, sizeof buffer, (flags + "c").c_str(), int(value));
    } else if (std::strchr("diouxX", conversion)) {
      const bool is_signed = conversion == 'd' || conversion == 'i';
      const long long number = is_wide     ? static_cast<long long>(value)
                               : is_signed ? s32(u32(value))
                                           : static_cast<long long>(u32(value));
      std::snprintf(buffer, sizeof buffer, (flags + "ll" + conversion).c_str(), number);
    } else {
      continue;
    }
    out += buffer;
  }
  return true;
}

/// Sets the call's result, for the active lanes.
void give_result(Warp& w, const CallSite& site, u32 value) {
  if (site.results.empty()) return;
  const Passing& p = site.results[0];
  for (u32 left = w.active; left; left &= left - 1) {
    const u32 lane = u32(__builtin_ctz(left));
    u8* to = p.in_register ? w.frame->narrow[0] + p.at + lane * 4
                           : w.local + lane * w.local_stride + w.frame->local_base + p.at;
    std::memcpy(to, &value, sizeof value);
  }
}

}  // namespace

const Op* print_formatted(const Op& op, Warp& w, const CallSite& site) {
  std::string& printed = w.block->printed;
  u32 count = 0;
  for (u32 left = w.active; left; left &= left - 1) {
    const u32 lane = u32(__builtin_ctz(left));
    std::string pattern, out;
    if (!read_text(op, w, lane, argument(w, site, 0, lane), pattern)) return nullptr;
    if (!format(op, w, lane, pattern, argument(w, site, 1, lane), out)) return nullptr;
    if (printed.size() + out.size() <= kPrintedMax) printed += out;
    ++count;
  }
  give_result(w, site, count);
  return &op + 1;
}

const Op* fail_assertion(const Op& op, Warp& w, const CallSite& site) {
  const u32 lane = u32(__builtin_ctz(w.active));
  std::string condition, file, function;
  if (!read_text(op, w, lane, argument(w, site, 0, lane), condition) ||
      !read_text(op, w, lane, argument(w, site, 1, lane), file) ||
      !read_text(op, w, lane, argument(w, site, 3, lane), function)) {
    return nullptr;
  }
  return fault(w, op, lane, "assert",
               fmt::format("assertion `{}` failed in {} ({}:{})", condition, function, file,
                           argument(w, site, 2, lane) & 0xffffffff));
}

}  // namespace attest::emulator
