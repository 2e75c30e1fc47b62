// The least that a kernel which keeps its scores on the chip does: two operations per product, ten
// for the weight of a score, its outputs written once.
#include "properties/counted_subject.hpp"

#include "properties/rows.hpp"
#include "reference/formats.hpp"

namespace attest {
namespace {

Index bytes_of(const Tensor& tensor) {
  return static_cast<Index>(tensor.bytes.size());
}

Counters attention_counters(const Problem& p, const Values& values, const Reply& reply) {
  constexpr Index kPerWeight = 10;
  Counters counters{.launches = 1, .warp_instructions = 1};
  for_each_row(p, [&](Index b, Index, Index i) {
    const Index seen = count_of(visible_keys(p, values, b, i));
    counters.f32_flops += seen * (2 * (p.head_dim + p.head_dim_v) + kPerWeight) + p.head_dim_v;
    counters.special_operations += seen + 1;
  });
  counters.global_written_bytes = bytes_of(reply.o) + bytes_of(reply.lse);
  return counters;
}

}  // namespace

Subject counted(Subject subject) {
  const auto attention = [](auto compute) {
    return [compute](const Problem& problem, const Values& values, Poison poison) {
      Reply reply = compute(problem, values, poison);
      reply.counters = attention_counters(problem, values, reply);
      return reply;
    };
  };
  subject.description.counts = true;
  subject.prefill = attention(subject.prefill);
  subject.decode = attention(subject.decode);
  subject.append = [append = subject.append](const Problem& problem, const CacheUpdate& update,
                                             Poison poison) {
    Reply reply = append(problem, update, poison);
    Index rows = 0;
    for (const Index n : update.new_seqlens) rows += n;
    reply.counters = {.launches = 1, .warp_instructions = 1};
    reply.counters.global_written_bytes = rows * problem.num_heads_kv *
                                          (problem.head_dim + problem.head_dim_v) *
                                          attest::bytes_of(cache_format(problem));
    return reply;
  };
  subject.projection = [project = subject.projection](const Projection& asked, Poison poison) {
    Reply reply = project(asked, poison);
    reply.counters = {.launches = 1, .warp_instructions = 1};
    reply.counters.f32_flops = 2 * reply.y.count() * asked.x.extent[3];
    return reply;
  };
  return subject;
}

}  // namespace attest
