// Values of the right extents for the tests of this folder: all zero, or random. It knows nothing
// of named fills.
#pragma once
#include <cmath>
#include <random>

#include "reference/formats.hpp"
#include "reference/values.hpp"

namespace attest {

/// Everything zero, everything visible, every optional tensor that the Problem asks for present.
inline Values zero_values(const Problem& p) {
  Values values;
  values.q = Tensor(p.input, {p.batch, p.num_heads_q, p.seqlen_q, p.head_dim});
  values.k = Tensor(cache_format(p), {p.batch, p.num_heads_kv, p.seqlen_kv, p.head_dim});
  values.v = Tensor(cache_format(p), {p.batch, p.num_heads_kv, p.seqlen_kv, p.head_dim_v});
  if (p.bias) values.bias = Tensor(Format::f32, {p.batch, p.num_heads_q, p.seqlen_q, p.seqlen_kv});
  if (p.alibi) values.alibi_slopes = Tensor(Format::f32, {1, 1, 1, p.num_heads_q});
  if (p.sinks) values.sinks = Tensor(Format::f32, {1, 1, 1, p.num_heads_q});
  if (p.scales != Scales::none) {
    values.k_scales = values.v_scales = Tensor(Format::f32, scales_extent(p, p.seqlen_kv));
    for (auto* scales : {&*values.k_scales, &*values.v_scales}) {
      for (Index i = 0; i < scales->count(); ++i) scales->set(i, 1);
    }
  }
  if (p.mask) {
    const auto count = static_cast<std::size_t>(p.batch * p.seqlen_q * p.seqlen_kv);
    values.mask =
        VisibilityMask{p.batch, p.seqlen_q, p.seqlen_kv, std::vector<std::uint8_t>(count, 1)};
  }
  return values;
}

inline void fill_normal(Tensor& tensor, double size, std::mt19937_64& random) {
  std::normal_distribution<double> normal(0.0, 1.0);
  for (Index i = 0; i < tensor.count(); ++i) tensor.set(i, size * normal(random));
}

/// Independent normals; one mask entry in four hides its key, one bias in twelve is -inf.
inline Values random_values(const Problem& p, std::mt19937_64& random) {
  Values values = zero_values(p);
  fill_normal(values.q, 1.0, random);
  const double size = p.scales == Scales::none ? 1.0 : facts(cache_format(p)).max_finite / 4;
  for (Tensor* tensor : {&values.k, &values.v}) fill_normal(*tensor, size, random);
  for (auto* scales : {&values.k_scales, &values.v_scales}) {  // scaled, they are about normal
    if (!*scales) continue;
    for (Index i = 0; i < (*scales)->count(); ++i) {
      (*scales)->set(i, (1 + static_cast<double>(random() % 1000) / 1000) / size);
    }
  }
  if (values.bias) {
    fill_normal(*values.bias, 1.0, random);
    for (Index i = 0; i < values.bias->count(); ++i) {
      if (random() % 12 == 0) values.bias->set(i, -std::numeric_limits<double>::infinity());
    }
  }
  if (values.alibi_slopes) {
    for (Index h = 0; h < p.num_heads_q; ++h) {
      values.alibi_slopes->set(
          h, std::exp2(-8.0 * static_cast<double>(h + 1) / static_cast<double>(p.num_heads_q)));
    }
  }
  if (values.sinks) fill_normal(*values.sinks, 1.0, random);
  if (values.mask) {
    for (auto& visible : values.mask->visible) visible = random() % 4 != 0 ? 1 : 0;
  }
  return values;
}

}  // namespace attest
