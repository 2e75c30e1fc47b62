// Slices of tensors: see the header.
#include "properties/excerpt.hpp"

#include <algorithm>

#include "properties/rows.hpp"

namespace attest {
namespace {

/// Rows [first, last) of one batch entry and head; an axis of extent 1 serves all.
Tensor slice(const Tensor& from, Index b, Index h, Index first, Index last) {
  Tensor to(from.format, {1, 1, last - first, from.extent[3]});
  const Index start =
      from.offset(from.extent[0] == 1 ? 0 : b, from.extent[1] == 1 ? 0 : h, first, 0);
  const std::size_t size =
      from.count() > 0 ? from.bytes.size() / static_cast<std::size_t>(from.count()) : 0;
  std::copy_n(from.bytes.begin() + start * static_cast<Index>(size), to.bytes.size(),
              to.bytes.begin());
  return to;
}

std::optional<Tensor> slice(const std::optional<Tensor>& from, Index b, Index h) {
  if (!from) return {};
  return slice(*from, b, h, 0, from->extent[2]);
}

std::optional<Tensor> number_of_head(const std::optional<Tensor>& from, Index h) {
  if (!from) return {};
  Tensor to(from->format, {1, 1, 1, 1});
  to.set_bits(0, from->bits(h));
  return to;
}

}  // namespace

Excerpt excerpt(const Problem& problem, const Values& values, const Given& given,
                const RowsOfHead& rows) {
  const auto& [b, h, first, last] = rows;
  const Index g = kv_head_of(problem, h), keys = key_length(problem, b);
  Excerpt part{.problem = problem, .values = {}, .o = {}, .lse = {}};
  Problem& p = part.problem;
  p.batch = p.num_heads_q = p.num_heads_kv = 1;
  p.seqlen_q = last - first;
  p.seqlen_kv = keys;
  p.seqlens_q.clear();
  p.seqlens_kv.clear();
  part.values.q = slice(values.q, b, h, first, last);
  part.values.k = slice(values.k, b, g, 0, keys);
  part.values.v = slice(values.v, b, g, 0, keys);
  if (values.bias) {
    const Tensor all = slice(*values.bias, b, h, first, last);
    Tensor bias(all.format, {1, 1, p.seqlen_q, keys});
    for (Index i = 0; i < p.seqlen_q; ++i) {
      for (Index j = 0; j < keys; ++j) bias.set(0, 0, i, j, all.at(0, 0, i, j));
    }
    part.values.bias = std::move(bias);
  }
  part.values.alibi_slopes = number_of_head(values.alibi_slopes, h);
  part.values.sinks = number_of_head(values.sinks, h);
  if (values.mask) {
    VisibilityMask mask{1, p.seqlen_q, keys, {}};
    for (Index i = first; i < last; ++i) {
      for (Index j = 0; j < keys; ++j) mask.visible.push_back(values.mask->at(b, i, j) ? 1 : 0);
    }
    part.values.mask = std::move(mask);
  }
  part.values.k_scales = slice(values.k_scales, b, g);
  part.values.v_scales = slice(values.v_scales, b, g);
  if (p.scales == Scales::token) {
    part.values.k_scales = slice(*values.k_scales, b, g, 0, keys);
    part.values.v_scales = slice(*values.v_scales, b, g, 0, keys);
  }
  if (given.o != nullptr) part.o = slice(*given.o, b, h, first, last);
  if (given.lse != nullptr) part.lse = slice(*given.lse, b, h, first, last);
  return part;
}

}  // namespace attest
