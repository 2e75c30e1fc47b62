// One table: a word, and when a Problem has it.
#include "fuzz/features.hpp"

#include <array>
#include <string_view>

#include "reference/text.hpp"

namespace attest {
namespace {

struct Feature {
  std::string_view name;
  bool (*present)(const Problem&);
};

constexpr std::array kFeatures{
    Feature{"causal", [](const Problem& p) { return p.causal; }},
    Feature{"top_left",
            [](const Problem& p) {
              return p.alignment == Alignment::top_left &&
                     (p.causal || p.alibi || p.window_left >= 0 || p.window_right >= 0);
            }},
    Feature{"window", [](const Problem& p) { return p.window_left >= 0 || p.window_right >= 0; }},
    Feature{"mask", [](const Problem& p) { return p.mask; }},
    Feature{"bias", [](const Problem& p) { return p.bias; }},
    Feature{"alibi", [](const Problem& p) { return p.alibi; }},
    Feature{"softcap", [](const Problem& p) { return p.softcap > 0; }},
    Feature{"sinks", [](const Problem& p) { return p.sinks; }},
    Feature{"gqa", [](const Problem& p) { return p.kv_heads > 1 && p.kv_heads < p.query_heads; }},
    Feature{"mqa", [](const Problem& p) { return p.kv_heads == 1 && p.query_heads > 1; }},
    Feature{"lengths",
            [](const Problem& p) { return !p.query_lengths.empty() || !p.key_lengths.empty(); }},
    Feature{"no_keys",
            [](const Problem& p) {
              for (const Index length : p.key_lengths) {
                if (length == 0) return true;
              }
              return p.keys == 0;
            }},
    Feature{"more_keys_than_queries", [](const Problem& p) { return p.keys > p.queries; }},
    Feature{"more_queries_than_keys", [](const Problem& p) { return p.queries > p.keys; }},
    Feature{"unequal_depths", [](const Problem& p) { return p.depth != p.v_depth; }},
    Feature{"own_scale", [](const Problem& p) { return p.scale != default_scale(p.depth); }},
    Feature{"spare_slots", [](const Problem& p) { return p.spare_slots > 0; }},
    Feature{"pages", [](const Problem& p) { return p.page_size > 0; }},
    Feature{"pages_permuted", [](const Problem& p) { return p.page_size > 0 && p.page_order > 0; }},
    Feature{"ring", [](const Problem& p) { return p.ring > 0; }},
    Feature{"rope", [](const Problem& p) { return p.rope != Rope::none; }},
    Feature{"splits", [](const Problem& p) { return p.splits > 1; }},
    Feature{"empty_row_nan", [](const Problem& p) { return p.empty_row == EmptyRow::nan; }},
    Feature{"lse_base_two", [](const Problem& p) { return p.lse_base == LogBase::two; }},
    Feature{"no_lse", [](const Problem& p) { return !wants_lse(p); }},
    Feature{"empty_lse_plus_inf",
            [](const Problem& p) { return p.empty_lse == EmptyLse::plus_inf; }},
    Feature{"strided", [](const Problem& p) { return p.strided != 0; }},
    Feature{"far_strides", is_far},
    Feature{"layout_bthd", [](const Problem& p) { return p.layout == Layout::bthd; }},
};

}  // namespace

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
