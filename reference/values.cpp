// Tensor: storage of numbers in their format. It rounds when a number is set and never otherwise.
#include "reference/values.hpp"

#include <cstring>

#include "reference/formats.hpp"

namespace attest {

Tensor::Tensor(Format its_format, Extent4 its_extent) : format(its_format), extent(its_extent) {
  bytes.resize(static_cast<std::size_t>(count() * bytes_of(format)));
}

double Tensor::at(Index flat) const {
  return decode(format, bits(flat));
}

void Tensor::set(Index flat, double number) {
  set_bits(flat, encode(format, number));
}

// Little-endian, like every machine that runs CUDA.
std::uint32_t Tensor::bits(Index flat) const {
  const auto width = static_cast<std::size_t>(bytes_of(format));
  std::uint32_t pattern = 0;
  std::memcpy(&pattern, bytes.data() + static_cast<std::size_t>(flat) * width, width);
  return pattern;
}

void Tensor::set_bits(Index flat, std::uint32_t pattern) {
  const auto width = static_cast<std::size_t>(bytes_of(format));
  std::memcpy(bytes.data() + static_cast<std::size_t>(flat) * width, &pattern, width);
}

Extent4 scales_extent(const Problem& problem, Index slots) {
  switch (problem.scales) {
    case Scales::none:
      return {0, 0, 0, 0};
    case Scales::tensor:
      return {1, 1, 1, 1};
    case Scales::head:
      return {1, problem.num_heads_kv, 1, 1};
    case Scales::token:
      return {problem.batch, problem.num_heads_kv, slots, 1};
  }
  return {0, 0, 0, 0};
}

double scale_at(const std::optional<Tensor>& scales, Index b, Index h, Index row) {
  if (!scales) return 1;
  const Extent4& extent = scales->extent;  // an extent of 1 serves all
  return scales->at(extent[0] == 1 ? 0 : b, extent[1] == 1 ? 0 : h, extent[2] == 1 ? 0 : row, 0);
}

}  // namespace attest
