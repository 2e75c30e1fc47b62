// The oracle behind the face of a Subject; append is a copy and projection an exact sum.
#include "properties/oracle_subject.hpp"

#include "properties/exact_dot.hpp"
#include "reference/oracle/exact.hpp"

namespace attest {
namespace {

Reply attention(const Problem& p, const Values& values, Poison) {
  const Truth truth = exact_attention(p, values);
  Reply reply;
  reply.o = Tensor(p.output, {p.batch, p.query_heads, p.queries, p.v_depth});
  reply.lse = Tensor(Format::f32, {p.batch, p.query_heads, p.queries, 1});
  for (Index flat = 0; flat < reply.o.count(); ++flat) {
    reply.o.set(flat, truth.o[static_cast<std::size_t>(flat)]);
  }
  for (Index flat = 0; flat < reply.lse.count(); ++flat) {
    reply.lse.set(flat, truth.lse[static_cast<std::size_t>(flat)]);
  }
  return reply;
}

void copy_rows(Tensor& cache, const Tensor& added, const CacheUpdate& update) {
  for (Index b = 0; b < cache.extent[0]; ++b) {
    const Index first = update.lengths[static_cast<std::size_t>(b)];
    const Index count = update.new_lengths[static_cast<std::size_t>(b)];
    for (Index h = 0; h < cache.extent[1]; ++h) {
      for (Index row = 0; row < count && first + row < cache.extent[2]; ++row) {
        for (Index c = 0; c < cache.extent[3]; ++c) {
          cache.set_bits(cache.offset(b, h, first + row, c),
                         added.bits(added.offset(b, h, row, c)));
        }
      }
    }
  }
}

Reply append(const Problem&, const CacheUpdate& update, Poison) {
  Reply reply;
  reply.k = update.k;
  reply.v = update.v;
  copy_rows(reply.k, update.new_k, update);
  copy_rows(reply.v, update.new_v, update);
  return reply;
}

Reply project(const Projection& asked, Poison) {
  const Tensor& x = asked.x;
  const Tensor& w = asked.w;
  Reply reply;
  reply.y = Tensor(asked.output, {x.extent[0], 1, x.extent[2], w.extent[3]});
  for (Index b = 0; b < x.extent[0]; ++b) {
    for (Index row = 0; row < x.extent[2]; ++row) {
      for (Index column = 0; column < w.extent[3]; ++column) {
        ExactDot dot;
        for (Index n = 0; n < x.extent[3]; ++n) {
          dot.add(x.at(b, 0, row, n), w.at(0, 0, n, column));
        }
        reply.y.set(b, 0, row, column, dot.value());
      }
    }
  }
  return reply;
}

}  // namespace

Subject oracle_subject() {
  Subject subject;
  subject.description.name = "oracle";
  subject.description.numerics = "50 digits, rounded once";
  subject.description.deterministic = true;
  subject.description.batch_invariant = true;
  subject.prefill = attention;
  subject.decode = attention;
  subject.append = append;
  subject.projection = project;
  return subject;
}

}  // namespace attest
