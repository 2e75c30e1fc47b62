// Stored tensors to dense ones, exactly or not at all: see the header.
#include "reports/conversion.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>

#include "reference/text.hpp"

namespace attest {
namespace {

template <class Number>
Number load(const StoredTensor& stored, Index flat) {
  Number number;
  std::memcpy(&number, stored.bytes.data() + static_cast<std::size_t>(flat) * sizeof number,
              sizeof number);
  return number;
}

/// The number of one stored element of a format that Tensor knows.
double number_of_bits(Format format, std::uint32_t bits) {
  thread_local Tensor one;
  if (one.count() != 1 || one.format != format) one = Tensor(format, {1, 1, 1, 1});
  one.set_bits(0, bits);
  return one.at(0);
}

/// Strides, in elements, of the stored tensor for (batch, head, row, column).
Extent4 strides_of(const Extent4& extent, AxisOrder order) {
  const Index b = extent[1] * extent[2] * extent[3];
  if (order.rows_before_heads) return {b, extent[3], extent[1] * extent[3], 1};
  return {b, extent[2] * extent[3], extent[3], 1};
}

/// Calls visit(target, source) with flat indices, targets in row-major order.
template <class Visit>
void for_each(const Extent4& extent, const Extent4& stride, const Visit& visit) {
  Index target = 0;
  for (Index b = 0; b < extent[0]; ++b) {
    for (Index h = 0; h < extent[1]; ++h) {
      for (Index row = 0; row < extent[2]; ++row) {
        const Index start = b * stride[0] + h * stride[1] + row * stride[2];
        for (Index column = 0; column < extent[3]; ++column) {
          visit(target++, start + column * stride[3]);
        }
      }
    }
  }
}

void store_exactly(Tensor& tensor, Index target, double number, std::string_view where) {
  tensor.set(target, number);
  const double held = tensor.at(target);
  if (held == number || (std::isnan(held) && std::isnan(number))) return;
  throw Error(
      fmt::format("{}: element {} is {:.17g}, which is no {} number (the nearest is {:.17g}); "
                  "round the tensor yourself, so that both sides see the same numbers",
                  where, target, number, name_of(tensor.format), held));
}

}  // namespace

std::string shape_text(const std::vector<Index>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

Extent4 extents_of(const StoredTensor& stored, AxisOrder order, std::string_view where) {
  const auto& shape = stored.shape;
  if (shape.size() < 2 || shape.size() > 4) {
    throw Error(fmt::format(
        "{}: shape {} has {} axes; legal are (T, D), {}", where, shape_text(shape), shape.size(),
        order.rows_before_heads ? "(T, H, D) or (B, T, H, D)" : "(H, T, D) or (B, H, T, D)"));
  }
  Extent4 extent{1, 1, 1, 1};
  if (shape.size() == 2) return {1, 1, shape[0], shape[1]};
  std::copy(shape.rbegin(), shape.rend(), extent.rbegin());
  if (order.rows_before_heads) std::swap(extent[1], extent[2]);
  return extent;
}

double number_at(const StoredTensor& stored, Index flat, std::string_view where) {
  switch (stored.dtype) {
    case Dtype::F64:
      return load<double>(stored, flat);
    case Dtype::F32:
      return load<float>(stored, flat);
    case Dtype::F16:
      return number_of_bits(Format::f16, load<std::uint16_t>(stored, flat));
    case Dtype::BF16:
      return number_of_bits(Format::bf16, load<std::uint16_t>(stored, flat));
    case Dtype::F8_E4M3:
      return number_of_bits(Format::e4m3, load<std::uint8_t>(stored, flat));
    case Dtype::F8_E5M2:
      return number_of_bits(Format::e5m2, load<std::uint8_t>(stored, flat));
    case Dtype::I32:
      return load<std::int32_t>(stored, flat);
    case Dtype::I64: {
      const auto number = load<std::int64_t>(stored, flat);
      constexpr std::int64_t kExactMax = std::int64_t{1}
                                         << 53;  // every integer up to it is a double
      if (number > kExactMax || number < -kExactMax) {
        throw Error(fmt::format("{}: element {} is {}, beyond 2^53", where, flat, number));
      }
      return static_cast<double>(number);
    }
    case Dtype::I8:
      return load<std::int8_t>(stored, flat);
    case Dtype::U8:
    case Dtype::BOOL:
      return load<std::uint8_t>(stored, flat);
  }
  return 0;
}

Tensor tensor_of(const StoredTensor& stored, AxisOrder order, Format format,
                 std::string_view where) {
  const Extent4 extent = extents_of(stored, order, where);
  Tensor tensor(format, extent);
  const bool same_format = format_of(stored.dtype) == format;
  if (same_format && !order.rows_before_heads) {
    std::copy(stored.bytes.begin(), stored.bytes.end(), tensor.bytes.begin());
    return tensor;
  }
  const std::size_t size = bytes_of(stored.dtype);
  for_each(extent, strides_of(extent, order), [&](Index target, Index source) {
    if (same_format) {  // bit for bit: the payload of a NaN survives
      std::memcpy(tensor.bytes.data() + static_cast<std::size_t>(target) * size,
                  stored.bytes.data() + static_cast<std::size_t>(source) * size, size);
    } else {
      store_exactly(tensor, target, number_at(stored, source, where), where);
    }
  });
  return tensor;
}

Tensor broadcast_of(const StoredTensor& stored, const Extent4& extent, std::string_view where) {
  const auto& shape = stored.shape;
  Extent4 own{1, 1, 1, 1};
  bool fits = shape.size() <= 4;
  if (fits) std::copy(shape.rbegin(), shape.rend(), own.rbegin());
  for (std::size_t axis = 0; axis < 4; ++axis) {
    fits = fits && (own[axis] == extent[axis] || own[axis] == 1);
  }
  if (!fits) {
    throw Error(fmt::format("{}: shape {} does not broadcast to (batch, head, query, key) = {}",
                            where, shape_text(shape), shape_text({extent.begin(), extent.end()})));
  }
  Extent4 stride = strides_of(own, {});
  for (std::size_t axis = 0; axis < 4; ++axis) {
    if (own[axis] == 1) stride[axis] = 0;
  }
  Tensor tensor(Format::f32, extent);
  for_each(extent, stride, [&](Index target, Index source) {
    store_exactly(tensor, target, number_at(stored, source, where), where);
  });
  return tensor;
}

std::vector<double> numbers_of(const StoredTensor& stored, AxisOrder order,
                               std::string_view where) {
  const Extent4 extent = extents_of(stored, order, where);
  std::vector<double> numbers(static_cast<std::size_t>(stored.count()));
  for_each(extent, strides_of(extent, order), [&](Index target, Index source) {
    numbers[static_cast<std::size_t>(target)] = number_at(stored, source, where);
  });
  return numbers;
}

}  // namespace attest
