// The least that a kernel which keeps its scores on the chip does: two operations per product, ten
// for the weight of a score, its outputs written once.
#include "properties/testing/counted_subject.hpp"

#include "properties/rows.hpp"
#include "reference/formats.hpp"

namespace attest {
namespace {

Index bytes_of(const Tensor& tensor) {
  return static_cast<Index>(tensor.bytes.size());
}

Counters counters_of(const Attend& asked, const Reply& reply) {
  const Problem& p = asked.problem;
  const Values& values = asked.values;
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

Counters counters_of(const Append& asked, const Reply&) {
  const Problem& p = asked.problem;
  Index rows = 0;
  for (const Index n : asked.update.new_seqlens) rows += n;
  Counters counters{.launches = 1, .warp_instructions = 1};
  counters.global_written_bytes =
      rows * p.num_heads_kv * (p.head_dim + p.head_dim_v) * attest::bytes_of(cache_format(p));
  return counters;
}

Counters counters_of(const Project& asked, const Reply& reply) {
  Counters counters{.launches = 1, .warp_instructions = 1};
  counters.f32_flops = 2 * reply.y.count() * asked.projection.x.extent[3];
  return counters;
}

Counters counters_of(const CopyPages&, const Reply&) {
  return {};
}

}  // namespace

Subject counted(Subject subject) {
  subject.description.counts = true;
  subject.call = [right = std::move(subject.call)](const Request& request, Poison poison) {
    Reply reply = right(request, poison);
    reply.counters =
        std::visit([&](const auto& asked) { return counters_of(asked, reply); }, request);
    return reply;
  };
  return subject;
}

}  // namespace attest
