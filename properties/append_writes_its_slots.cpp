// Append writes its slots: afterwards slot lengths[b] + r holds exactly the given row r, for every
// r < new_lengths[b] whose slot exists; every other slot of every batch entry is as it was.
// No arithmetic is involved: compared bit for bit. The cache holds arbitrary patterns, NaN
// included; the rows given are finite. Sees: slots off by one, rows behind the capacity written
// elsewhere, heads or batch entries mixed, K and V confused, a cache that is cleared or copied only
// in part.
#include <algorithm>
#include <cmath>

#include "properties/ask.hpp"
#include "properties/catalogue.hpp"
#include "properties/counter_random.hpp"
#include "properties/judge.hpp"
#include "reference/oracle/exact.hpp"

namespace attest {
namespace {

/// Patterns that tell every element from its neighbours. `salt` tells tensors apart.
Tensor patterned(Format format, Extent4 extent, std::uint64_t salt, bool finite) {
  Tensor tensor(format, extent);
  for (Index flat = 0; flat < tensor.count(); ++flat) {
    tensor.set_bits(flat, random_bits(salt, Stream::other, 0, 0, 0, flat)[0]);
    if (finite && !std::isfinite(tensor.at(flat))) tensor.set(flat, -1);
  }
  return tensor;
}

void judge_tensor(Judge& judge, const Tensor& before, const Tensor& added, const Tensor& after,
                  const CacheUpdate& update, std::string_view name) {
  const Extent4& extent = before.extent;
  for (Index b = 0; b < extent[0]; ++b) {
    const Index first = update.lengths[static_cast<std::size_t>(b)];
    const Index last = first + update.new_lengths[static_cast<std::size_t>(b)];
    for (Index h = 0; h < extent[1]; ++h) {
      for (Index slot = 0; slot < extent[2]; ++slot) {
        const bool written = slot >= first && slot < last;
        for (Index c = 0; c < extent[3]; ++c) {
          const Index at = before.offset(b, h, slot, c);
          const std::uint32_t right =
              written ? added.bits(added.offset(b, h, slot - first, c)) : before.bits(at);
          judge.demand(after.bits(at) == right, after.at(at), {b, h, slot, c},
                       written ? std::string(name) + ": an appended slot must hold the given bits"
                               : std::string(name) + ": this slot must stay as it was");
        }
      }
    }
  }
}

}  // namespace

Verdict append_writes_its_slots(const Subject& subject, const Problem& problem,
                                const Values& values) {
  const Problem& p = problem;
  const Index capacity = p.keys + p.spare_slots;
  if (capacity == 0 || p.chunk == 0) return vacuous("no slot, or nothing to append");
  CacheUpdate update;
  update.k = patterned(p.input, {p.batch, p.kv_heads, capacity, p.depth}, 1, false);
  update.v = patterned(p.input, {p.batch, p.kv_heads, capacity, p.v_depth}, 2, false);
  update.new_k = patterned(p.input, {p.batch, p.kv_heads, p.chunk, p.depth}, 3, true);
  update.new_v = patterned(p.input, {p.batch, p.kv_heads, p.chunk, p.v_depth}, 4, true);
  for (Index b = 0; b < p.batch; ++b) {
    // Batch entries append different numbers of rows: all, all but one, ..., none, all again.
    update.lengths.push_back(key_length(p, b));
    update.new_lengths.push_back(p.chunk - b % (p.chunk + 1));
  }
  // The rows of the case itself where there are some, so that its fill plays a part.
  for (Index b = 0; b < p.batch; ++b) {
    for (Index h = 0; h < p.kv_heads; ++h) {
      for (Index row = 0; row < std::min(p.keys, p.chunk); ++row) {
        for (Index c = 0; c < p.depth; ++c) {
          update.new_k.set_bits(update.new_k.offset(b, h, row, c),
                                values.k.bits(values.k.offset(b, h, row, c)));
        }
      }
    }
  }
  const Answer answer = ask_append(subject, problem, update);
  if (answer.instead) return *answer.instead;
  Judge judge;
  judge_tensor(judge, update.k, update.new_k, answer.reply.k, update, "k");
  judge_tensor(judge, update.v, update.new_v, answer.reply.v, update, "v");
  return judge.verdict();
}

}  // namespace attest
