// How other projects decide whether an output of attention is right, each as one formula over a
// whole tensor, to be tried on the same outputs as the bounds. None of it judges anything of ours.
#pragma once
#include <span>
#include <string_view>
#include <vector>

#include "reference/values.hpp"

namespace attest {

struct PeerInputs {
  Format output;
  std::vector<double> o;         // what is judged
  std::vector<double> truth;     // rounded to the output format, as those projects have it
  std::vector<double> baseline;  // the same attention in the input format, see plain_attention
};

struct PeerRule {
  std::string_view name,
      formula;              // r: truth, p: baseline, | | over all elements unless max or mean
  std::string_view source;  // a file of the project
  bool (*accepts)(const PeerInputs&);
};
/// For 16-bit formats; where a rule has a number per format, that of bf16.
std::span<const PeerRule> peer_rules();

/// Attention step by step as a framework does it without a fused kernel: the keys times the scale,
/// the scores, their softmax and O each rounded to the input format, with sums that are exact.
/// FlashAttention's tests take it as baseline (attention_ref, upcast=False, reorder_ops=True).
/// Domain: no bias, ALiBi, softcap, sinks or scales of a cache; every row sees a key.
std::vector<double> plain_attention(const Problem& problem, const Values& values);

}  // namespace attest
