// Wrong rows: attention in plain double, row by row, with one slip in it. Nobody's reference: where
// nothing is done wrong it may differ from the truth by double's rounding. Knows no bound.
#pragma once
#include <vector>

#include "reference/values.hpp"

namespace attest {

/// What is done wrong. `asked` is the Problem as misunderstood; the rest are slips on the way.
struct Slip {
  Problem asked;
  double scale_factor = 1;
  bool drops_last = false, leaks_first = false, swaps = false;
  bool answers_zero = false, weighs_equally = false;
  bool changes_lse_base = false, forgets_max = false, starts_max_at_zero = false;
  Format p_format = Format::f32, output = Format::f32;  // what P and O lose, besides what they may
  double o_factor = 1;
  bool next_kv_head = false, modulo_kv_head = false, next_batch = false;
};

/// A row before its weights meet V.
struct WeighedRow {
  Index entry = 0, head = 0;   // the batch entry and KV head whose V is read
  std::vector<Index> keys;     // the rows of V that are read
  std::vector<double> shares;  // the weight of each; with a sink's they add up to 1
  double lse = 0;
};

class WrongRows {
 public:
  WrongRows(const Problem& problem, const Values& values);

  /// Not for several threads: the inner products of a row are kept, because most slips share them.
  WeighedRow weigh(const Slip& slip, Index b, Index h, Index i);
  std::vector<double> o_of(const Slip& slip, const WeighedRow& row) const;

  /// No |v| that the row may read is larger; infinite where one is NaN.
  double largest_value(const WeighedRow& row) const;

 private:
  double product(Index b, Index h, Index i, Index entry, Index head, Index j) const;
  double kept_product(Index b, Index h, Index i, Index j);
  double score(const Slip& slip, double product, Index b, Index h, Index i, Index j) const;
  std::vector<Index> keys_seen(const Slip& slip, Index b, Index i) const;

  const Problem& problem_;
  const Values& values_;
  Values unmasked_;  // nothing but the absence of a mask: what visible() reads when it is ignored
  std::vector<double> q_, k_, v_;
  std::vector<double> largest_;  // |v| per batch entry and KV head
  std::vector<double> kept_;     // products of row kept_row_ with its own keys; NaN: not yet formed
  std::size_t kept_row_;
};

}  // namespace attest
