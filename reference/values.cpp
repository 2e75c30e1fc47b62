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

}  // namespace attest
