// Every feature has a Problem that has it, and the default has none.
#include "fuzz/features.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <map>

namespace attest {
namespace {

TEST(Features, TheDefaultHasOnlyItsFormatAndItsFill) {
  EXPECT_EQ(features_of(Case{}), (std::vector<std::string>{"format:f32", "fill:normal"}));
}

TEST(Features, EachIsSeenAlone) {
  const std::map<std::string, std::function<void(Problem&)>> edits{
      {"causal", [](Problem& p) { p.causal = true; }},
      {"window", [](Problem& p) { p.window_right = 0; }},
      {"mask", [](Problem& p) { p.mask = true; }},
      {"bias", [](Problem& p) { p.bias = true; }},
      {"alibi", [](Problem& p) { p.alibi = true; }},
      {"softcap", [](Problem& p) { p.softcap = 1; }},
      {"sinks", [](Problem& p) { p.sinks = true; }},
      {"gqa", [](Problem& p) { p.num_heads_kv = 2, p.num_heads_q = 4; }},
      {"mqa", [](Problem& p) { p.num_heads_q = 2; }},
      {"lengths", [](Problem& p) { p.seqlens_q = {0}; }},
      {"more_keys_than_queries", [](Problem& p) { p.seqlen_kv = 2; }},
      {"more_queries_than_keys", [](Problem& p) { p.seqlen_q = 2; }},
      {"unequal_depths", [](Problem& p) { p.head_dim_v = 2; }},
      {"own_scale", [](Problem& p) { p.softmax_scale = 2; }},
      {"spare_slots", [](Problem& p) { p.spare_slots = 1; }},
      {"pages", [](Problem& p) { p.page_size = 2; }},
      {"ring", [](Problem& p) { p.ring = 2; }},
      {"rope", [](Problem& p) { p.rope = Rope::pairs; }},
      {"splits", [](Problem& p) { p.num_splits = 2; }},
      {"empty_row_nan", [](Problem& p) { p.empty_row = EmptyRow::nan; }},
      {"lse_base_two", [](Problem& p) { p.lse_base = LogBase::two; }},
      {"no_lse", [](Problem& p) { p.lse_base = LogBase::none; }},
      {"empty_lse_plus_inf", [](Problem& p) { p.empty_lse = EmptyLse::plus_inf; }},
      {"strided", [](Problem& p) { p.strided = 1; }},
      {"layout_bthd", [](Problem& p) { p.layout = Layout::bthd; }},
  };
  for (const auto& [name, edit] : edits) {
    Case edited;
    edit(edited.problem);
    EXPECT_EQ(features_of(edited), (std::vector<std::string>{name, "format:f32", "fill:normal"}));
  }
  const std::vector<std::string> in_company{"top_left", "no_keys", "pages_permuted", "far_strides"};
  for (const std::string& name : feature_names()) {
    EXPECT_TRUE(edits.contains(name) || std::ranges::count(in_company, name) == 1) << name;
  }
}

TEST(Features, SomeComeOnlyInCompany) {
  Case edited;
  edited.problem.causal = true;
  edited.problem.alignment = Alignment::top_left;
  edited.problem.seqlens_kv = {0};
  EXPECT_EQ(features_of(edited),
            (std::vector<std::string>{"causal", "top_left", "lengths", "no_keys", "format:f32",
                                      "fill:normal"}));
}

TEST(Features, FarStridesAreStrides) {
  Case edited;
  edited.problem.strided = 1U << static_cast<unsigned>(Strided::q);
  edited.problem.strided |= 1U << static_cast<unsigned>(Strided::far);
  EXPECT_EQ(features_of(edited),
            (std::vector<std::string>{"strided", "far_strides", "format:f32", "fill:normal"}));
}

TEST(Features, CachesSayTheirFormatAndScales) {
  Case edited;
  edited.problem.cache = Format::i8;
  edited.problem.scales = Scales::token;
  edited.problem.page_size = 2;
  edited.problem.page_order = 1;
  EXPECT_EQ(features_of(edited),
            (std::vector<std::string>{"pages", "pages_permuted", "format:f32", "cache:i8",
                                      "scales:token", "fill:normal"}));
}

}  // namespace
}  // namespace attest
