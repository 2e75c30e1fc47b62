// Problems and values for the tests of this folder: small integers, so that sums are exact and
// every element differs from its neighbours. Test code; no program includes this.
#pragma once
#include <filesystem>
#include <string>

#include "optimized/plugin/worker.hpp"
#include "reference/values.hpp"

namespace attest {

inline std::filesystem::path program_folder() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path();
}

inline WorkerOptions options_for(const std::string& test_plugin) {
  WorkerOptions options;
  options.plugin = program_folder() / "test_plugins" / (test_plugin + ".so");
  return options;
}

/// Element n holds n modulo 251 plus `first`: exact in f32, and in f16 below 2048.
inline Tensor counting(Format format, Extent4 extent, int first) {
  Tensor tensor(format, extent);
  for (Index n = 0; n < tensor.count(); ++n) tensor.set(n, static_cast<double>(n % 251 + first));
  return tensor;
}

inline Values counting_values(const Problem& p) {
  Values values;
  values.q = counting(p.input, {p.batch, p.num_heads_q, p.seqlen_q, p.head_dim}, 1);
  values.k = counting(cache_format(p), {p.batch, p.num_heads_kv, p.seqlen_kv, p.head_dim}, 2);
  values.v = counting(cache_format(p), {p.batch, p.num_heads_kv, p.seqlen_kv, p.head_dim_v}, 3);
  if (p.scales != Scales::none) {
    values.k_scales = counting(Format::f32, scales_extent(p, p.seqlen_kv), 7);
    values.v_scales = counting(Format::f32, scales_extent(p, p.seqlen_kv), 8);
  }
  if (p.bias) {
    values.bias = counting(Format::f32, {p.batch, p.num_heads_q, p.seqlen_q, p.seqlen_kv}, 4);
  }
  if (p.alibi) values.alibi_slopes = counting(Format::f32, {1, 1, 1, p.num_heads_q}, 5);
  if (p.sinks) values.sinks = counting(Format::f32, {1, 1, 1, p.num_heads_q}, 6);
  if (p.mask) {
    values.mask = VisibilityMask{p.batch, p.seqlen_q, p.seqlen_kv, {}};
    for (Index n = 0; n < p.batch * p.seqlen_q * p.seqlen_kv; ++n) {
      values.mask->visible.push_back(n % 3 == 0 ? 1 : 0);
    }
  }
  return values;
}

}  // namespace attest
