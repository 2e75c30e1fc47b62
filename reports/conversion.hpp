// Stored tensors of anybody's dtype and shape to the dense Tensors of a Problem, and back. Numbers
// are moved exactly or not at all: what a format cannot hold is an Error, never a rounding.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "reference/values.hpp"
#include "reports/safetensors.hpp"

namespace attest {

/// How a stored shape is read as (batch, head, row, column).
struct AxisOrder {
  bool rows_before_heads = false;  // (batch, row, head, column): "bthd"
};

/// (T, D), (H, T, D) or (B, H, T, D), or the same with rows before heads. Missing axes are 1.
/// Throws Error for other ranks. `where` is "file: tensor".
Extent4 extents_of(const StoredTensor& stored, AxisOrder order, std::string_view where);

/// Domain: any stored number; flat is a row-major index. Error: exact, except that an I64 beyond
/// 2^53 is refused by Error. Special: NaN and infinities as stored.
double number_at(const StoredTensor& stored, Index flat, std::string_view where);

/// In (batch, head, row, column) order and in `format`. Throws Error naming the first number that
/// `format` cannot hold.
Tensor tensor_of(const StoredTensor& stored, AxisOrder order, Format format,
                 std::string_view where);

/// Broadcast to `extent` as numpy does (axes aligned on the right, extent 1 repeats), in f32.
Tensor broadcast_of(const StoredTensor& stored, const Extent4& extent, std::string_view where);

/// The numbers as doubles in (batch, head, row, column) order; any dtype.
std::vector<double> numbers_of(const StoredTensor& stored, AxisOrder order, std::string_view where);

/// "[2, 5, 64]"
std::string shape_text(const std::vector<Index>& shape);

}  // namespace attest
