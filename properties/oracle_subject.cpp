// The oracle behind the face of a Subject; appends are made in double, and projection is an exact
// sum.
#include "properties/oracle_subject.hpp"

#include "properties/cache_rows.hpp"
#include "properties/exact_dot.hpp"
#include "reference/oracle/exact.hpp"

namespace attest {
namespace {

Reply reply_to(const Attend& asked) {
  const Problem& p = asked.problem;
  const Values& values = asked.values;
  const Truth truth = exact_attention(p, values);
  Reply reply;
  reply.o = Tensor(p.output, {p.batch, p.num_heads_q, p.seqlen_q, p.head_dim_v});
  if (wants_lse(p)) reply.lse = Tensor(Format::f32, {p.batch, p.num_heads_q, p.seqlen_q, 1});
  for (Index flat = 0; flat < reply.o.count(); ++flat) {
    reply.o.set(flat, truth.o[static_cast<std::size_t>(flat)]);
  }
  for (Index flat = 0; flat < reply.lse.count(); ++flat) {
    reply.lse.set(flat, truth.lse[static_cast<std::size_t>(flat)]);
  }
  return reply;
}

Reply reply_to(const Append& asked) {
  return appended<double>(asked.problem, asked.update);
}

Reply reply_to(const CopyPages& asked) {
  const PageCopy& copy = asked.copy;
  Reply reply;
  reply.k = copy.k;
  reply.v = copy.v;
  for (Tensor* tensor : {&reply.k, &reply.v}) {
    const Index page = tensor->count() / tensor->extent[0];
    for (const PageCopy::Pair& pair : copy.pairs) {
      for (Index n = 0; n < page; ++n) {
        tensor->set_bits(pair.to * page + n, tensor->bits(pair.from * page + n));
      }
    }
  }
  return reply;
}

Reply reply_to(const Project& request) {
  const Projection& asked = request.projection;
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
        if (asked.bias) dot.add(asked.bias->at(column), 1);
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
  subject.offered.set();
  subject.call = [](const Request& request, Poison) {
    return std::visit([](const auto& asked) { return reply_to(asked); }, request);
  };
  return subject;
}

}  // namespace attest
