// footprint: bytes of a cache, exactly, with the formula.
#include <fmt/format.h>

#include <array>
#include <string>

#include "reference/text.hpp"
#include "reference/values.hpp"
#include "reports/commands/commands.hpp"

namespace attest {
namespace {

Format format_named(const std::string& word) {
  constexpr std::array kFormats{Format::f32, Format::f16, Format::bf16, Format::e4m3, Format::e5m2};
  std::vector<std::string_view> names;
  for (const Format format : kFormats) {
    if (name_of(format) == word) return format;
    names.push_back(name_of(format));
  }
  const std::string near = nearest(word, names);
  throw Error(fmt::format("--format: there is no format '{}'; {}", word,
                          near.empty() ? "`attest list formats` names them all"
                                       : fmt::format("did you mean '{}'?", near)));
}

std::uint64_t product(std::initializer_list<std::uint64_t> factors) {
  std::uint64_t result = 1;
  for (const std::uint64_t factor : factors) {
    if (__builtin_mul_overflow(result, factor, &result)) {
      throw Error("footprint: that is more than 2^64 bytes; check the extents");
    }
  }
  return result;
}

/// "12.50 GiB" beside the exact number.
std::string in_words(std::uint64_t bytes) {
  constexpr std::array kUnits{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  auto amount = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; amount >= 1024 && unit + 1 < kUnits.size(); ++unit) amount /= 1024;
  return fmt::format("{:.2f} {}", amount, kUnits[unit]);
}

}  // namespace

int footprint(const FootprintOptions& options) {
  const auto bytes = static_cast<std::uint64_t>(
      Tensor(format_named(options.format), Extent4{1, 1, 1, 1}).bytes.size());
  const std::uint64_t v_depth = options.v_depth.value_or(options.depth);
  std::uint64_t width = 0;
  if (__builtin_add_overflow(options.depth, v_depth, &width)) {
    throw Error("footprint: that is more than 2^64 bytes; check the extents");
  }
  const std::uint64_t total =
      product({options.layers, options.kv_heads, width, options.tokens, options.batch, bytes});
  if (v_depth == options.depth) {
    fmt::print(
        "2 x layers x KV heads x width x tokens x batch x bytes\n"
        "2 x {} x {} x {} x {} x {} x {} = {} bytes ({})\n",
        options.layers, options.kv_heads, options.depth, options.tokens, options.batch, bytes,
        total, in_words(total));
  } else {
    fmt::print(
        "layers x KV heads x (width of K + width of V) x tokens x batch x bytes\n"
        "{} x {} x ({} + {}) x {} x {} x {} = {} bytes ({})\n",
        options.layers, options.kv_heads, options.depth, v_depth, options.tokens, options.batch,
        bytes, total, in_words(total));
  }
  return 0;
}

}  // namespace attest
