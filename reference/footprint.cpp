// The size of a KV cache. Products are formed only when they fit.
#include "reference/footprint.hpp"

#include <fmt/format.h>

#include <array>

#include "reference/formats.hpp"
#include "reference/text.hpp"

namespace attest {
namespace {

std::uint64_t extent(std::string_view name, Index value) {
  if (value >= 0) return static_cast<std::uint64_t>(value);
  throw Error(fmt::format("footprint: {} is {}; it must not be negative", name, value));
}

}  // namespace

Footprint kv_cache_footprint(const CacheShape& shape) {
  const std::uint64_t key_width = extent("key width", shape.key_width);
  const std::uint64_t value_width = extent("value width", shape.value_width);
  const std::array<std::uint64_t, 6> factors{
      extent("layers", shape.layers),  // in the order of the formula
      extent("kv heads", shape.num_heads_kv),
      key_width + value_width,  // each below 2^63
      extent("tokens", shape.tokens),
      extent("batch", shape.batch),
      static_cast<std::uint64_t>(bytes_of(shape.format)),
  };
  const std::string width =
      key_width == value_width
          ? fmt::format("{} width", key_width)
          : fmt::format("({} key width + {} value width)", key_width, value_width);
  Footprint result;
  result.formula =
      fmt::format("{}{} layers x {} KV heads x {} x {} tokens x {} batch x {} bytes ({})",
                  key_width == value_width ? "2 x " : "", shape.layers, shape.num_heads_kv, width,
                  shape.tokens, shape.batch, bytes_of(shape.format), name_of(shape.format));
  bool nothing = false;
  for (std::uint64_t factor : factors) nothing = nothing || factor == 0;
  result.bytes = nothing ? 0 : 1;
  for (std::uint64_t factor : factors) {
    if (!nothing && __builtin_mul_overflow(result.bytes, factor, &result.bytes)) {
      throw Error(fmt::format("footprint: {} is more than 2^64 - 1 bytes; give smaller extents",
                              result.formula));
    }
  }
  result.formula += fmt::format(" = {} bytes", result.bytes);
  return result;
}

std::string readable_bytes(std::uint64_t bytes) {
  constexpr std::array<std::string_view, 6> kUnits{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  if (bytes < 1024) return fmt::format("{} bytes", bytes);
  auto size = static_cast<double>(bytes) / 1024;
  std::size_t unit = 0;
  // 1023.9995 would be printed as 1024.
  for (; size >= 1023.9995 && unit + 1 < kUnits.size(); ++unit) size /= 1024;
  std::string number = fmt::format("{:.3f}", size);
  number.erase(number.find_last_not_of('0') + 1);
  if (number.back() == '.') number.pop_back();
  return fmt::format("{} {}", number, kUnits[unit]);
}

}  // namespace attest
