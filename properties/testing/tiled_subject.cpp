// Tiled attention in f32 with a running maximum, written for reading. Shares no code with any
// kernel.
#include "properties/testing/tiled_subject.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "properties/cache_rows.hpp"
#include "properties/oracle_subject.hpp"
#include "properties/rows.hpp"

namespace attest {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// std::max drops a NaN that comes second, and a row of NaN then looks like one without keys.
float larger(float one, float other) {
  return one > other || std::isnan(one) ? one : other;
}

/// The running state of one row: the weighted sum of values relative to the maximum so far.
struct State {
  float max = -kInfinity, sum = 0;
  std::vector<float> o;
};

class TiledRow {
 public:
  TiledRow(const Problem& problem, const Values& values, Index b, Index h, Index i)
      : p_(problem), values_(values), b_(b), h_(h), g_(kv_head_of(problem, h)), i_(i) {}

  /// Scores and values of keys [first, last) join `state`.
  void visit(State& state, Index first, Index last) const {
    std::vector<float> scores;
    float max = state.max;
    for (Index j = first; j < last; ++j) {
      scores.push_back(visible(p_, values_, b_, i_, j) ? score(j) : -kInfinity);
      max = larger(max, scores.back());
    }
    if (max == -kInfinity) return;
    rescale(state, max);
    for (Index j = first; j < last; ++j) {
      const float weight = std::exp(scores[static_cast<std::size_t>(j - first)] - max);
      if (weight == 0) continue;
      state.sum += weight;
      for (Index c = 0; c < p_.head_dim_v; ++c) {
        const auto v = static_cast<float>(values_.v.at(b_, g_, j, c));
        state.o[static_cast<std::size_t>(c)] += weight * (v * scale_of(values_.v_scales, j));
      }
    }
  }

  /// Merges another part of the keys into `state`.
  static void merge(State& state, State part) {
    const float max = larger(state.max, part.max);
    if (max == -kInfinity) return;
    rescale(state, max);
    rescale(part, max);
    state.sum += part.sum;
    for (std::size_t c = 0; c < state.o.size(); ++c) state.o[c] += part.o[c];
  }

 private:
  static void rescale(State& state, float max) {
    const float factor = state.max == -kInfinity ? 0 : std::exp(state.max - max);
    state.max = max;
    state.sum *= factor;
    for (float& element : state.o) element *= factor;
  }

  float scale_of(const std::optional<Tensor>& scales, Index j) const {
    return static_cast<float>(scale_at(scales, b_, g_, j));
  }

  float score(Index j) const {
    float x = 0;
    for (Index c = 0; c < p_.head_dim; ++c) {
      x += static_cast<float>(values_.q.at(b_, h_, i_, c)) *
           static_cast<float>(values_.k.at(b_, g_, j, c));
    }
    float s = x * scale_of(values_.k_scales, j) * p_.softmax_scale;
    const auto cap = static_cast<float>(p_.softcap);
    if (cap > 0) s = cap * std::tanh(s / cap);
    if (p_.bias) s += static_cast<float>(values_.bias->at(b_, h_, i_, j));
    if (p_.alibi) {
      const auto distance = static_cast<float>(std::abs(i_ + diagonal(p_, b_) - j));
      s -= static_cast<float>(values_.alibi_slopes->at(h_)) * distance;
    }
    return s;
  }

  const Problem& p_;
  const Values& values_;
  Index b_, h_, g_, i_;
};

void store(const Problem& p, const Values& values, State state, Reply& reply, Index b, Index h,
           Index i) {
  if (state.sum == 0) {
    const double fill =
        p.empty_row == EmptyRow::nan ? std::numeric_limits<double>::quiet_NaN() : 0.0;
    for (Index c = 0; c < p.head_dim_v; ++c) reply.o.set(b, h, i, c, fill);
  } else {
    if (p.sinks) {
      State sink{static_cast<float>(values.sinks->at(h)), 1, state.o};
      std::fill(sink.o.begin(), sink.o.end(), 0.0F);
      TiledRow::merge(state, sink);
    }
    for (Index c = 0; c < p.head_dim_v; ++c) {
      reply.o.set(b, h, i, c, state.o[static_cast<std::size_t>(c)] / state.sum);
    }
  }
  if (!wants_lse(p)) return;
  const auto empty = static_cast<float>(lse_without_keys(p));
  float lse = state.sum == 0 ? (p.sinks ? static_cast<float>(values.sinks->at(h)) : empty)
                             : state.max + std::log(state.sum);
  if (p.lse_base == LogBase::two) lse *= static_cast<float>(1 / std::log(2.0));
  reply.lse.set(b, h, i, 0, lse);
}

Reply attention(const Attend& asked, Index tile) {
  const Problem& p = asked.problem;
  const Values& values = asked.values;
  const Index splits = asked.operation == Operation::decode ? p.num_splits : 1;
  Reply reply;
  reply.o = Tensor(p.output, {p.batch, p.num_heads_q, p.seqlen_q, p.head_dim_v});
  if (wants_lse(p)) reply.lse = Tensor(Format::f32, {p.batch, p.num_heads_q, p.seqlen_q, 1});
  for_each_row(p, [&](Index b, Index h, Index i) {
    // By the entry's own length: no neighbour moves a key to another part.
    const Index keys = key_length(p, b), tiles = (keys + tile - 1) / tile;
    const Index tiles_per_split = std::max<Index>(1, (tiles + splits - 1) / splits);
    const TiledRow row(p, values, b, h, i);
    const State empty{-kInfinity, 0, std::vector<float>(static_cast<std::size_t>(p.head_dim_v))};
    State whole = empty;
    for (Index first = 0; first < tiles; first += tiles_per_split) {
      State part = empty;
      for (Index t = first; t < std::min(tiles, first + tiles_per_split); ++t) {
        row.visit(part, t * tile, std::min(keys, (t + 1) * tile));
      }
      TiledRow::merge(whole, part);
    }
    store(p, values, whole, reply, b, h, i);
  });
  return reply;
}

Reply project(const Projection& asked) {
  Reply reply;
  reply.y = Tensor(asked.output, {asked.x.extent[0], 1, asked.x.extent[2], asked.w.extent[3]});
  for (Index b = 0; b < asked.x.extent[0]; ++b) {
    for (Index row = 0; row < asked.x.extent[2]; ++row) {
      for (Index column = 0; column < asked.w.extent[3]; ++column) {
        float sum = 0;
        for (Index n = 0; n < asked.x.extent[3]; ++n) {
          sum += static_cast<float>(asked.x.at(b, 0, row, n)) *
                 static_cast<float>(asked.w.at(0, 0, n, column));
        }
        if (asked.bias) sum += static_cast<float>(asked.bias->at(column));
        reply.y.set(b, 0, row, column, sum);
      }
    }
  }
  return reply;
}

}  // namespace

Subject tiled_subject(Index tile) {
  Subject subject = oracle_subject();
  subject.description.name = "tiled";
  subject.description.numerics = "f32 on the host";
  // glibc: expf and tanhf within 1 and 2 ulp (its manual, "Known Maximum Errors"), an ulp at most
  // 2^-23 relative; logf within 1 ulp, of numbers up to log(2^24) < 17: 2^-19.
  subject.description.precision.exp_error = 0x1p-23;
  subject.description.precision.tanh_error = 0x1p-22;
  subject.description.precision.log_error = 0x1p-19;
  intercept<Attend>(subject, [tile](const Attend& asked, Poison, const Handler&) {
    return attention(asked, tile);
  });
  intercept<Append>(subject, [](const Append& asked, Poison, const Handler&) {
    return appended<float>(asked.problem, asked.update);
  });
  intercept<Project>(subject, [](const Project& asked, Poison, const Handler&) {
    return project(asked.projection);
  });
  return subject;
}

}  // namespace attest
