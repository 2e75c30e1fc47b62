// The limit follows from the problem's work, counted as what the definition multiplies: for each
// pair of a query and a key, in each head, head_dim products for the score and head_dim_v for the
// output.
//
//   one lane does it all    a product costs about 16 instructions (two addresses, loads, widening,
//                           masks and the exponential shared by few columns), and who scans the
//                           scores again for the maximum and for the sum does it up to 3 times:
//                           below 64 a product.
//   whole tiles, all lanes  queries and keys are padded to a tile, rows of columns too, and 32
//                           lanes share those 16 instructions: below 2 a padded product, scanned
//                           again or not.
//   whatever it computes    filling, waiting for others in turns, clearing scratch: as many as are
//                           executed within a few seconds.
//
// The limit is their sum. An endless kernel of a small problem is thus found
// within seconds, and a slow one of a large problem is never called endless.
#include "optimized/plugin/instruction_limit.hpp"

#include <algorithm>

namespace attest {
namespace {

constexpr double kWithoutWork = 1 << 26;
constexpr double kPerProduct = 64, kPerPaddedProduct = 2;
constexpr double kMost = 0x1p62;  // no launch gets there, and it fits what counts
constexpr std::int64_t kRowTile = 128, kColumnTile = 64;

double padded(std::int64_t count, std::int64_t tile) {
  return static_cast<double>((count + tile - 1) / tile * tile);
}

const TensorSpec* find(const RequestHeader& request, TensorName name) {
  const TensorSpec* end = request.tensors + request.tensor_count;
  const TensorSpec* found = std::find_if(
      request.tensors, end, [name](const TensorSpec& spec) { return spec.name == name; });
  return found == end ? nullptr : found;
}

struct Products {
  double exact = 0, padded = 0;
};

Products products_of(const RequestHeader& request) {
  const AttestProblem& p = request.problem;
  if (request.operation == ATTEST_PREFILL || request.operation == ATTEST_DECODE) {
    const double heads = static_cast<double>(p.batch) * static_cast<double>(p.num_heads_q);
    const double pairs = heads * static_cast<double>(p.seqlen_q) * static_cast<double>(p.seqlen_kv);
    return {pairs * static_cast<double>(p.head_dim + p.head_dim_v),
            heads * padded(p.seqlen_q, kRowTile) * padded(p.seqlen_kv, kRowTile) *
                (padded(p.head_dim, kColumnTile) + padded(p.head_dim_v, kColumnTile))};
  }
  const TensorSpec* x = find(request, TensorName::x);
  const TensorSpec* w = find(request, TensorName::w);
  if (x == nullptr || w == nullptr) return {};
  std::int64_t rows = 1;
  for (int axis = 0; axis < 3; ++axis) rows *= x->extent[axis];
  const std::int64_t inner = x->extent[3], columns = w->extent[3];
  return {static_cast<double>(rows) * static_cast<double>(inner) * static_cast<double>(columns),
          padded(rows, kRowTile) * padded(inner, kColumnTile) * padded(columns, kRowTile)};
}

double elements_of(const RequestHeader& request) {
  double sum = 0;
  for (std::uint32_t i = 0; i < request.tensor_count; ++i) {
    double elements = 1;
    for (const std::int64_t extent : request.tensors[i].extent) {
      elements *= static_cast<double>(extent);
    }
    sum += elements;
  }
  return sum;
}

}  // namespace

std::uint64_t instruction_limit(const RequestHeader& request) {
  const Products products = products_of(request);
  // Each element is moved, as it is multiplied, by 64 instructions at most.
  const double limit = kWithoutWork + kPerProduct * (products.exact + elements_of(request)) +
                       kPerPaddedProduct * products.padded;
  return static_cast<std::uint64_t>(std::min(limit, kMost));
}

}  // namespace attest
