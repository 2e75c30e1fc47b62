// Extents of a drawn Problem: heads, lengths and widths, and what they may cost.
// Knows what a property needs of its cases, not which property that is.
#pragma once
#include <string_view>

#include "reference/problem.hpp"

namespace attest {

/// What a property needs of its cases.
struct Needs {
  bool few_queries = false;   // decode
  bool prefill = false;       // asks prefill, whatever the Problem says
  bool splits = false;        // asks attention_for(problem), or decode
  bool sequence = false;      // causal, seqlen_q == seqlen_kv, lengths alike
  bool plain_scores = false;  // no softcap, bias, ALiBi or mask
  bool two_keys = false;
  bool many_rows = false;     // statistics: over a thousand independent rows
  bool one_hot = false;       // V as wide as there are keys, or not much narrower
  bool neighbours = false;    // at least two batch entries or KV heads
  bool no_attention = false;  // append, projection: masks and scores mean nothing
  bool many_scores = false;   // for a narrow V
  bool whole_tiles = false;   // of keys, and nothing that hides any of them
  Index served = 0;           // so many in a hundred on pages, in a ring, or in another format
  bool pages = false;         // all of them on pages
  bool narrow = false;        // caches of another format, with scales
  bool biased = false;        // projection: a bias in some
  bool turns = false;         // append: rope
  bool stored_bits = false;   // caches hold the bits that were given: no other format, no scales
  bool path = false;          // from projection to decode, in a narrow cache
};

/// Of the property of that name.
Needs needs_of(std::string_view property);

/// All extents, so that the case costs no more than it may.
void draw_extents(Problem& p, const Needs& needs);

/// Rows of 16-bit numbers made whole 16 bytes wide, in most cases.
void align_rows(Problem& p, const Needs& needs);

}  // namespace attest
