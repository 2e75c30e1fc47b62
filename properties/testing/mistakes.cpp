// Each mistake is the oracle put another question, its reply spoilt, or its costs raised.
#include "properties/testing/mistakes.hpp"

#include <cmath>
#include <memory>
#include <utility>

#include "properties/oracle_subject.hpp"
#include "properties/testing/counted_subject.hpp"
#include "properties/testing/mistaken_subjects.hpp"
#include "reference/text.hpp"

namespace attest {
namespace {

std::vector<Mistake> mistakes_in_masks_and_scores() {
  return {
      {"causal off by one",
       {"oracle_agreement", "decode_agreement", "causality", "recovered_weights"},
       [] {
         return misunderstanding([](Problem& p, Values&) {
           if (!p.causal) return;
           p.causal = false;
           p.window_right = 1;
         });
       }},
      {"scale of a head_dim padded to 64",
       {"effective_scale", "variance_scaling", "oracle_agreement"},
       [] {
         return misunderstanding([](Problem& p, Values&) {
           const Index padded = (p.head_dim + 63) / 64 * 64;
           p.softmax_scale *= default_scale(padded) / default_scale(p.head_dim);
         });
       }},
      {"causal mask restarts with each chunk",
       {"cached_equals_recomputed"},
       [] {
         return misunderstanding([](Problem& p, Values&) { p.alignment = Alignment::top_left; });
       }},
      {"empty rows are NaN",
       {"oracle_agreement", "decode_agreement"},
       [] { return misunderstanding([](Problem& p, Values&) { p.empty_row = EmptyRow::nan; }); }},
      {"the last key is lost when keys are split",
       {"decode_agreement"},
       [] {
         return misunderstanding([](Problem& p, Values&) {
           if (p.num_splits == 1 || p.seqlen_kv < 2 || p.alibi || !p.seqlens_kv.empty() || p.causal)
             return;
           p.seqlens_kv.assign(static_cast<std::size_t>(p.batch), p.seqlen_kv - 1);
         });
       }},
      {"a bias of -1e4 and less hides its key",
       {"oracle_agreement", "decode_agreement"},
       [] {
         return misunderstanding([](Problem&, Values& values) {
           for (Index n = 0; values.bias && n < values.bias->count(); ++n) {
             if (values.bias->at(n) <= -1e4) values.bias->set(n, -INFINITY);
           }
         });
       }},
      {"the first batch entry's keys serve all",
       {"batch_independence", "oracle_agreement"},
       [] {
         return misunderstanding([](Problem& p, Values& values) {
           const std::size_t bytes = values.k.bytes.size() / static_cast<std::size_t>(p.batch);
           for (std::size_t n = bytes; n < values.k.bytes.size(); ++n) {
             values.k.bytes[n] = values.k.bytes[n % bytes];
           }
         });
       }},
  };
}

/// NaN is taken for a row without keys.
void forget_nan(const Problem&, Reply& reply) {
  for (Index n = 0; n < reply.o.count(); ++n) {
    if (std::isnan(reply.o.at(n))) reply.o.set(n, 0);
  }
}

/// Keys are split by the longest sequence of the batch, which moves the last bit of some sums.
void round_by_longest(const Problem& problem, Reply& reply) {
  for (Index n = 0; problem.seqlen_kv % 2 == 1 && n < reply.o.count(); ++n) {
    reply.o.set_bits(n, reply.o.bits(n) ^ 1U);
  }
}

/// Sums are added in the order in which blocks come, which is another for every schedule.
Subject ordered_by_schedule() {
  Subject subject = oracle_subject();
  const auto order = std::make_shared<std::uint64_t>(0);
  subject.begin_under = [order](const Setting& setting) { *order = setting.schedule; };
  subject.reorder = [order](std::uint64_t turn) { *order = turn; };
  intercept<Attend>(subject, [=](const Attend& asked, Poison poison, const Handler& right) {
    Reply reply = right(asked, poison);
    reply.o.set_bits(0, reply.o.bits(0) ^ static_cast<std::uint32_t>(*order % 2));
    return reply;
  });
  return subject;
}

std::vector<Mistake> mistakes_in_bits() {
  return {
      {"NaN is taken for an empty row", {"visible_nonfinite"}, [] { return spoiling(forget_nan); }},
      {"a NaN in one row of q reaches the next",
       {"visible_nonfinite"},
       [] {
         return spoiling([](const Problem&, Reply& r) {
           for (Index n = r.o.count() - 1; n > 0; --n) {
             if (std::isnan(r.o.at(n - 1))) r.o.set_bits(n, r.o.bits(n - 1));
           }
         });
       }},
      {"keys are split by the longest sequence",
       {"batch_invariance"},
       [] { return spoiling(round_by_longest); }},
      {"sums follow the order of the blocks", {"rerun"}, ordered_by_schedule},
  };
}

std::vector<Mistake> mistakes_in_replies() {
  const auto runs = std::make_shared<int>(0);
  return {
      {"output too large by a thousandth",
       {"row_sums", "oracle_agreement", "recovered_weights", "convexity"},
       [] { return spoiling([](const Problem&, Reply& r) { scale_all(r.o, 1.001); }); }},
      {"weights may be negative",
       {"recovered_weights"},
       [] {
         return spoiling([](const Problem&, Reply& r) {
           for (Index n = 0; n < r.o.count(); ++n) r.o.set(n, r.o.at(n) - 1e-30);
         });
       }},
      {"LSE in the other base",
       {"oracle_agreement", "decode_agreement"},
       [] {
         return spoiling([](const Problem&, Reply& r) { scale_all(r.lse, 1 / std::log(2.0)); });
       }},
      {"one element is NaN",
       {"oracle_agreement", "decode_agreement", "row_sums", "recovered_weights", "convexity",
        "effective_scale", "variance_scaling", "cached_equals_recomputed"},
       [] { return spoiling([](const Problem&, Reply& r) { r.o.set(0, std::nan("")); }); }},
      {"every run differs in the last bit",
       {"rerun", "causality", "batch_independence"},
       [runs] {
         return spoiling([runs](const Problem&, Reply& r) {
           r.o.set_bits(0, r.o.bits(0) ^ static_cast<std::uint32_t>((*runs)++ % 2));
         });
       }},
  };
}

/// An honest subject whose work is changed by `change`.
Subject costing(std::function<void(const Problem&, Counters&)> change) {
  Subject subject = counted(oracle_subject());
  intercept<Attend>(subject, [=](const Attend& asked, Poison poison, const Handler& right) {
    Reply reply = right(asked, poison);
    change(asked.problem, reply.counters);
    return reply;
  });
  return subject;
}

std::vector<Mistake> mistakes_in_costs() {
  return {
      {"weights are written, a byte each",
       {"no_score_matrix"},
       [] {
         return costing([](const Problem& p, Counters& c) {
           c.global_written_bytes += p.batch * p.num_heads_q * p.seqlen_q * p.seqlen_kv;
         });
       }},
      {"each key scans all keys",
       {"work_grows_with_scores", "cached_work"},
       [] { return costing([](const Problem& p, Counters& c) { c.f32_flops *= p.seqlen_kv; }); }},
      {"the second half of the keys is skipped",
       {"work_grows_with_scores"},
       [] { return costing([](const Problem&, Counters& c) { c.f32_flops /= 4; }); }},
      {"append copies the cache",
       {"cached_work"},
       [] {
         Subject subject = counted(oracle_subject());
         intercept<Append>(subject, [](const Append& asked, Poison poison, const Handler& right) {
           Reply reply = right(asked, poison);
           reply.counters.global_written_bytes *=
               asked.problem.seqlen_kv + asked.problem.spare_slots;
           return reply;
         });
         return subject;
       }},
      {"the whole prefix is projected for each row",
       {"cached_work"},
       [] {
         Subject subject = counted(oracle_subject());
         intercept<Project>(subject, [](const Project& asked, Poison poison, const Handler& right) {
           Reply reply = right(asked, poison);
           reply.counters.f32_flops *= (asked.projection.x.extent[2] + 1) / 2;
           return reply;
         });
         return subject;
       }},
  };
}

std::vector<Mistake> mistakes_with_memory() {
  return {
      {"append off by one",
       {"append_writes_its_slots", "cached_equals_recomputed"},
       [] {
         return appending([](CacheUpdate& u) {
           for (Index& n : u.cache_seqlens) ++n;
         });
       }},
      {"append forgets the last row",
       {"append_writes_its_slots", "cached_equals_recomputed"},
       [] {
         return appending([](CacheUpdate& u) {
           for (Index& n : u.new_seqlens) n = n > 0 ? n - 1 : 0;
         });
       }},
      {"append clears the slots behind",
       {"append_writes_its_slots"},
       [] {
         return appending([](CacheUpdate& u) {
           for (Tensor* tensor : {&u.k, &u.v}) {
             for (Index c = 0; c < tensor->extent[3]; ++c) {
               tensor->set_bits(tensor->offset(0, 0, tensor->extent[2] - 1, c), 0);
             }
           }
         });
       }},
  };
}

std::vector<Mistake> mistakes_in_caches() {
  return {
      {"append turns at the row's number, not the token's",
       {"append_writes_its_slots", "quantised_path"},
       [] {
         return appending([](CacheUpdate& u) {
           if (!u.rope_cos_sin) return;
           const Extent4 e = u.rope_cos_sin->extent;
           for (Index flat = e[3]; flat < u.rope_cos_sin->count(); ++flat) {
             u.rope_cos_sin->set_bits(flat, u.rope_cos_sin->bits(flat % e[3]));
           }
         });
       }},
      {"append stores a token's scale behind it",
       {"append_writes_its_slots", "quantised_path"},
       [] {
         Subject subject = oracle_subject();
         intercept<Append>(subject, [](const Append& asked, Poison poison, const Handler& right) {
           Reply reply = right(asked, poison);
           Tensor& scales = reply.k_scales;
           const Tensor was = scales;
           for (Index flat = 1; flat < scales.count(); ++flat) {
             scales.set_bits(flat, was.bits(flat - 1));
           }
           return reply;
         });
         return subject;
       }},
      {"append truncates to the cache's format", {"append_writes_its_slots"}, truncating_append},
      {"the scales of the first head serve all",
       {"decode_agreement"},
       [] {
         return misunderstanding([](Problem& p, Values& values) {
           if (p.scales == Scales::none) return;
           for (Tensor* scales : {&*values.k_scales, &*values.v_scales}) {
             const Index slots = scales->extent[2], heads = scales->extent[1];
             for (Index flat = 0; flat < scales->count(); ++flat) {
               const Index entry = flat / (slots * heads);
               scales->set(flat, scales->at(entry * slots * heads + flat % slots));
             }
           }
         });
       }},
      {"pages are copied from their targets",
       {"copied_pages"},
       [] {
         Subject subject = oracle_subject();
         intercept<CopyPages>(subject,
                              [](const CopyPages& asked, Poison poison, const Handler& right) {
                                PageCopy copy = asked.copy;
                                for (PageCopy::Pair& pair : copy.pairs)
                                  std::swap(pair.from, pair.to);
                                return right(CopyPages{asked.problem, copy}, poison);
                              });
         return subject;
       }},
  };
}

std::vector<Mistake> mistakes_in_projections() {
  return {
      {"projection leaves out the bias",
       {"projection_agreement"},
       [] {
         Subject subject = oracle_subject();
         intercept<Project>(subject, [](const Project& asked, Poison poison, const Handler& right) {
           Projection plain = asked.projection;
           plain.bias = std::nullopt;
           return right(Project{plain}, poison);
         });
         return subject;
       }},
      {"projection keeps the weights that it was given first",
       {"quantised_path"},
       [] {
         Subject subject = oracle_subject();
         const auto kept = std::make_shared<Tensor>();
         intercept<Project>(subject,
                            [kept](const Project& asked, Poison poison, const Handler& right) {
                              Projection stale = asked.projection;
                              if (kept->extent != asked.projection.w.extent ||
                                  kept->format != asked.projection.w.format)
                                *kept = asked.projection.w;
                              stale.w = *kept;
                              return right(Project{stale}, poison);
                            });
         return subject;
       }},
      {"projection loses the last term",
       {"projection_agreement"},
       [] {
         Subject subject = oracle_subject();
         intercept<Project>(subject, [](const Project& asked, Poison poison, const Handler& right) {
           Projection shorter = asked.projection;
           for (Index b = 0; b < asked.projection.x.extent[0]; ++b) {
             for (Index row = 0; row < asked.projection.x.extent[2]; ++row) {
               shorter.x.set(b, 0, row, asked.projection.x.extent[3] - 1, 0);
             }
           }
           return right(Project{shorter}, poison);
         });
         return subject;
       }},
  };
}

}  // namespace

std::vector<Mistake> mistakes() {
  std::vector<Mistake> all = mistakes_in_masks_and_scores();
  for (const auto& more : {mistakes_in_replies(), mistakes_in_bits(), mistakes_with_memory(),
                           mistakes_in_caches(), mistakes_in_projections(), mistakes_in_costs()}) {
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

}  // namespace attest
