// One table: a word, what it means, and when a Problem has it.
#include "fuzz/features.hpp"

#include <array>
#include <string_view>

#include "reference/text.hpp"

namespace attest {
namespace {

constexpr std::array kFeatures{
    Feature{"causal", "no query sees a key after its own position",
            [](const Problem& p) { return p.causal; }},
    Feature{"top_left", "positions are counted from the first query and key, and it matters",
            [](const Problem& p) {
              return p.alignment == Alignment::top_left &&
                     (p.causal || p.alibi || p.window_left >= 0 || p.window_right >= 0);
            }},
    Feature{"window", "a query sees a bounded number of keys to one or both sides",
            [](const Problem& p) { return p.window_left >= 0 || p.window_right >= 0; }},
    Feature{"mask", "which keys a query sees is said one by one",
            [](const Problem& p) { return p.mask; }},
    Feature{"bias", "a number per query and key is added to the logits",
            [](const Problem& p) { return p.bias; }},
    Feature{"alibi", "slopes times the distance are subtracted from the logits",
            [](const Problem& p) { return p.alibi; }},
    Feature{"softcap", "logits are capped by a tanh",
            [](const Problem& p) { return p.softcap > 0; }},
    Feature{"sinks", "a logit per head joins the row sum, with no value",
            [](const Problem& p) { return p.sinks; }},
    Feature{"gqa", "several query heads share a KV head, of which there are several",
            [](const Problem& p) { return p.num_heads_kv > 1 && p.num_heads_kv < p.num_heads_q; }},
    Feature{"mqa", "all query heads share one KV head",
            [](const Problem& p) { return p.num_heads_kv == 1 && p.num_heads_q > 1; }},
    Feature{"lengths", "batch entries have lengths of their own",
            [](const Problem& p) { return !p.seqlens_q.empty() || !p.seqlens_kv.empty(); }},
    Feature{"no_keys", "some batch entry has no keys",
            [](const Problem& p) {
              for (const Index length : p.seqlens_kv) {
                if (length == 0) return true;
              }
              return p.seqlen_kv == 0;
            }},
    Feature{"more_keys_than_queries", "seqlen_kv > seqlen_q",
            [](const Problem& p) { return p.seqlen_kv > p.seqlen_q; }},
    Feature{"more_queries_than_keys", "seqlen_q > seqlen_kv",
            [](const Problem& p) { return p.seqlen_q > p.seqlen_kv; }},
    Feature{"unequal_depths", "v is not as wide as q and k",
            [](const Problem& p) { return p.head_dim != p.head_dim_v; }},
    Feature{"own_scale", "the scale is not 1/sqrt(head_dim)",
            [](const Problem& p) { return p.softmax_scale != default_scale(p.head_dim); }},
    Feature{"spare_slots", "the cache has slots behind the last key",
            [](const Problem& p) { return p.spare_slots > 0; }},
    Feature{"pages", "the cache lies on pages", [](const Problem& p) { return p.page_size > 0; }},
    Feature{"pages_permuted", "these are not in order",
            [](const Problem& p) { return p.page_size > 0 && p.page_order > 0; }},
    Feature{"ring", "the cache is a ring", [](const Problem& p) { return p.ring > 0; }},
    Feature{"rope", "an append turns keys", [](const Problem& p) { return p.rope != Rope::none; }},
    Feature{"splits", "a decode splits the keys",
            [](const Problem& p) { return p.num_splits > 1; }},
    Feature{"empty_row_nan", "o of a row without keys is NaN",
            [](const Problem& p) { return p.empty_row == EmptyRow::nan; }},
    Feature{"lse_base_two", "lse is a logarithm to base two",
            [](const Problem& p) { return p.lse_base == LogBase::two; }},
    Feature{"no_lse", "no lse is asked for", [](const Problem& p) { return !wants_lse(p); }},
    Feature{"empty_lse_plus_inf", "lse of a row without keys is +inf",
            [](const Problem& p) { return p.empty_lse == EmptyLse::plus_inf; }},
    Feature{"strided", "some tensor lies with gaps",
            [](const Problem& p) { return p.strided != 0; }},
    Feature{"far_strides", "its gaps are so wide that offsets exceed 32 bits", is_far},
    Feature{"layout_bthd", "rows lie before heads in memory",
            [](const Problem& p) { return p.layout == Layout::bthd; }},
};

}  // namespace

std::span<const Feature> features() {
  return kFeatures;
}

std::vector<std::string> feature_names() {
  std::vector<std::string> names;
  for (const Feature& feature : kFeatures) names.emplace_back(feature.name);
  return names;
}

std::vector<std::string> features_of(const Case& test_case) {
  std::vector<std::string> names;
  for (const Feature& feature : kFeatures) {
    if (feature.present(test_case.problem)) names.emplace_back(feature.name);
  }
  names.push_back("format:" + std::string(name_of(test_case.problem.input)));
  if (test_case.problem.cache) {
    names.push_back("cache:" + std::string(name_of(*test_case.problem.cache)));
  }
  if (test_case.problem.scales != Scales::none) {
    names.push_back("scales:" + std::string(name_of(test_case.problem.scales)));
  }
  names.push_back("fill:" + test_case.fill);
  return names;
}

}  // namespace attest
