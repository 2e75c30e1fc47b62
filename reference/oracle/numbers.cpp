// Reading tensors once, for all products that follow.
#include "reference/oracle/numbers.hpp"

#include <cmath>

#include "reference/oracle/radius.hpp"

namespace attest::oracle {

Numbers numbers_of(const Tensor& tensor, const std::optional<Tensor>& scales, Index b, Index h,
                   Index count) {
  const Index width = tensor.extent[3];
  Numbers numbers{Matrix(count, width), std::vector<double>(static_cast<std::size_t>(count)),
                  std::vector<bool>(static_cast<std::size_t>(count)), false};
  for (Index i = 0; i < count; ++i) {
    const double scale = scale_at(scales, b, h, i);
    const Index offset = tensor.offset(b, h, i, 0);
    auto row = numbers.rows.row(i);
    for (Index c = 0; c < width; ++c) row(c) = tensor.at(offset + c) * scale;
    double norm = row.norm();
    if (!std::isfinite(norm)) {
      row.setZero();
      norm = 0;
      numbers.special[static_cast<std::size_t>(i)] = numbers.any_special = true;
    }
    numbers.norm[static_cast<std::size_t>(i)] = norm * kRoom;
  }
  return numbers;
}

}  // namespace attest::oracle
