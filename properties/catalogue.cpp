// The list of every property: name, statement, check. Nothing else knows how many there are.
#include "properties/catalogue.hpp"

namespace attest {

std::span<const Property> catalogue() {
  static constexpr Property kProperties[] = {
      {"oracle_agreement", "prefill: O and LSE lie within what the declared precision path allows.",
       oracle_agreement, explain_oracle_agreement, Operation::prefill},
      {"decode_agreement",
       "decode over a cache with spare slots, in any number of splits: O and LSE lie within what "
       "the "
       "declared precision path allows.",
       decode_agreement, explain_decode_agreement, Operation::decode},
      {"row_sums", "with V = 1 every output is 1 (or what the sink leaves), within the bound.",
       row_sums},
      {"recovered_weights",
       "the weights, recovered through one-hot V, are non-negative, zero where a key is invisible, "
       "right within the bound, and sum to one.",
       recovered_weights},
      {"causality",
       "changing invisible keys and values, to other numbers, huge ones or poison, moves no bit.",
       causality},
      {"variance_scaling",
       "of iid inputs of unit variance, the scaled scores have variance scale^2 head_dim (false "
       "alarm "
       "below 1e-9).",
       variance_scaling},
      {"effective_scale",
       "in two-key problems, ln(w1/w0) / (q.k1 - q.k0) is the scale asked for, at every head_dim.",
       effective_scale},
      {"cached_equals_recomputed",
       "a sequence fed through the cache, in chunks or token by token, gives the rows of one pass.",
       cached_equals_recomputed},
      {"append_writes_its_slots",
       "append puts the given rows into their slots, turned, scaled and rounded as asked, drops "
       "what lies behind the capacity, and touches nothing else.",
       append_writes_its_slots, nullptr, Operation::append},
      {"copied_pages", "a copied page holds the bits of its source; no other page changes.",
       copied_pages, nullptr, Operation::copy_pages},
      {"quantised_path",
       "projection, rope, append to a scaled cache and split decode give the rows of one pass over "
       "unrounded keys and values, within what 8 bits can lose.",
       quantised_path},
      {"projection_agreement", "Y = X W + bias within what its sum may lose, plus one rounding.",
       projection_agreement, nullptr, Operation::projection},
      {"convexity", "every output lies within the bound of the hull of the visible values.",
       convexity},
      {"batch_independence",
       "what other batch entries and other KV heads hold, NaN included, moves no bit of a row.",
       batch_independence},
      {"batch_invariance",
       "where promised, a row's bits are those that it has when its batch entry is alone.",
       batch_invariance},
      {"visible_nonfinite",
       "a NaN or infinity in a visible number comes out where the formula weighs it, and moves no "
       "bit of what does not depend on it.",
       visible_nonfinite},
      {"rerun", "where promised, the same question gets the same bits, in any order of the blocks.",
       rerun},
      {"no_score_matrix",
       "what a prefill writes to global memory has no part that grows with queries times keys.",
       no_score_matrix},
      {"work_grows_with_scores",
       "arithmetic grows as the number of scores does, and is never less than they take.",
       work_grows_with_scores},
      {"cached_work",
       "a token that joins a cache costs one row written, one pass over the keys, one projection.",
       cached_work},
  };
  return kProperties;
}

}  // namespace attest
