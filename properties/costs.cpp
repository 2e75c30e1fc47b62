// Growth, and subjects that count nothing.
#include "properties/costs.hpp"

#include <cmath>

#include "properties/judge.hpp"

namespace attest {

std::optional<Verdict> uncounted(const Subject& subject) {
  if (subject.description.counts) return std::nullopt;
  return declined("the subject counts nothing: it does not run on the emulator");
}

bool grows_at_most(std::int64_t doubled, std::int64_t single, int exponent) {
  return static_cast<double>(doubled) < std::exp2(exponent + 0.5) * static_cast<double>(single);
}

Tensor twice(const Tensor& tensor) {
  const Extent4& e = tensor.extent;
  Tensor result(tensor.format, {e[0], e[1], 2 * e[2], e[3]});
  for (Index b = 0; b < e[0]; ++b) {
    for (Index h = 0; h < e[1]; ++h) {
      for (Index row = 0; row < 2 * e[2]; ++row) {
        for (Index c = 0; c < e[3]; ++c) {
          result.set_bits(result.offset(b, h, row, c),
                          tensor.bits(tensor.offset(b, h, row % e[2], c)));
        }
      }
    }
  }
  return result;
}

}  // namespace attest
