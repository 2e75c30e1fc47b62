// The table. What is coupled in every kernel (input and output format, both widths) is one row.
#include "properties/domains/dimensions.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "reference/text.hpp"
#include "reference/validity.hpp"

namespace attest {
namespace {

using Edit = std::function<void(Problem&)>;
using Edits = std::vector<Edit>;

bool never(const Needs&) {
  return false;
}
bool shows_all(const Needs& n) {
  return n.two_keys || n.many_rows || n.whole_tiles || n.sequence;
}
/// The path needs a narrow cache; what a cache has rounded is neither recomputed nor the same work.
bool needs_its_cache(const Needs& n) {
  return n.path || n.sequence || n.whole_tiles;
}

/// A cache in the format of the input is none of its own, unless it has scales.
void forget_same_cache(Problem& p) {
  if (p.cache == p.input && p.scales == Scales::none) p.cache.reset();
}

template <auto kField>
void take_field(Problem& to, const Problem& from) {
  to.*kField = from.*kField;
}

template <auto kField, class... Values>
Edits set_to(Values... values) {
  using Field = std::remove_reference_t<decltype(Problem{}.*kField)>;
  return {Edit([values](Problem& p) { p.*kField = static_cast<Field>(values); })...};
}

template <auto kField, class... Values>
Dimension field(std::string_view name, bool (*fixed)(const Needs&), Values... values) {
  return {name, take_field<kField>, set_to<kField>(values...), fixed};
}

template <bool Problem::*kField>
Dimension flag(std::string_view name, bool (*fixed)(const Needs&)) {
  return field<kField>(name, fixed, false, true);
}

Dimension formats() {
  Edits values;
  for (const auto& [input, output] : {std::pair{Format::bf16, Format::bf16},
                                      {Format::f16, Format::f16},
                                      {Format::f32, Format::f32},
                                      {Format::e4m3, Format::bf16},
                                      {Format::e5m2, Format::bf16},
                                      {Format::bf16, Format::f32},
                                      {Format::f16, Format::f32},
                                      {Format::e4m3, Format::f16},
                                      {Format::e4m3, Format::f32},
                                      {Format::f32, Format::bf16},
                                      {Format::f32, Format::f16}}) {
    values.emplace_back([input = input, output = output](Problem& p) {
      p.input = input;
      p.output = output;
    });
  }
  return {"formats",
          [](Problem& to, const Problem& from) {
            to.input = from.input;
            to.output = from.output;
          },
          values, never};
}

Dimension cache() {
  Edits values{[](Problem& p) {
    p.cache.reset();
    p.scales = Scales::none;
  }};
  for (const Format format : {Format::e4m3, Format::i8, Format::e5m2}) {
    for (const Scales scales : {Scales::tensor, Scales::head, Scales::token, Scales::none}) {
      values.emplace_back([format, scales](Problem& p) {
        p.cache = format;
        p.scales = scales;
      });
    }
  }
  for (const Format format : {Format::f16, Format::bf16, Format::f32}) {
    values.emplace_back([format](Problem& p) {
      p.cache = format == p.input ? std::nullopt : std::optional(format);
      p.scales = Scales::none;
    });
  }
  return {"cache",
          [](Problem& to, const Problem& from) {
            to.cache = from.cache;
            to.scales = from.scales;
            forget_same_cache(to);
          },
          values, needs_its_cache};
}

Dimension widths() {
  Edits values;
  for (const auto& [depth, v_depth] : {std::pair<Index, Index>{64, 64},
                                       {128, 128},
                                       {8, 8},
                                       {32, 32},
                                       {256, 256},
                                       {96, 96},
                                       {80, 80},
                                       {16, 16},
                                       {72, 72},
                                       {112, 112},
                                       {160, 160},
                                       {192, 192},
                                       {192, 128},
                                       {576, 512},
                                       {512, 512},
                                       {320, 320},
                                       {384, 384},
                                       {40, 40},
                                       {48, 48},
                                       {24, 24},
                                       {224, 224},
                                       {4, 4},
                                       {2, 2},
                                       {1, 1},
                                       {64, 128},
                                       {128, 64},
                                       {64, 40},
                                       {5, 3},
                                       {65, 65}}) {
    values.emplace_back([depth = depth, v_depth = v_depth](Problem& p) {
      p.depth = depth;
      p.v_depth = v_depth;
    });
  }
  return {"head_dim",
          [](Problem& to, const Problem& from) {
            to.depth = from.depth;
            to.v_depth = from.v_depth;
          },
          values, never};
}

Dimension heads() {
  Edits values;
  for (const auto& [kv_heads, group] : {std::pair<Index, Index>{1, 1},
                                        {2, 1},
                                        {2, 2},
                                        {1, 4},
                                        {2, 3},
                                        {1, 8},
                                        {3, 1},
                                        {4, 2},
                                        {8, 1},
                                        {8, 4},
                                        {1, 16},
                                        {1, 32},
                                        {1, 64},
                                        {1, 128},
                                        {16, 1}}) {
    values.emplace_back([kv_heads = kv_heads, group = group](Problem& p) {
      p.kv_heads = kv_heads;
      p.query_heads = kv_heads * group;
    });
  }
  return {"heads",
          [](Problem& to, const Problem& from) {
            to.kv_heads = from.kv_heads;
            to.query_heads = from.query_heads;
          },
          values, never};
}

Dimension window() {
  Edits values;
  for (const auto& [left, right] :
       {std::pair<Index, Index>{-1, -1}, {7, 0}, {16, -1}, {3, 3}, {-1, 0}}) {
    values.emplace_back([left = left, right = right](Problem& p) {
      p.window_left = left;
      p.window_right = right;
    });
  }
  return {"window",
          [](Problem& to, const Problem& from) {
            to.window_left = from.window_left;
            to.window_right = from.window_right;
          },
          values, shows_all};
}

template <std::vector<Index> Problem::*kLengths, Index Problem::*kFull>
Dimension lengths(std::string_view name) {
  return {name,
          take_field<kLengths>,
          {[](Problem& p) { (p.*kLengths).clear(); },
           [](Problem& p) {
             (p.*kLengths).assign(static_cast<std::size_t>(p.batch), p.*kFull);
             (p.*kLengths).front() = p.*kFull / 2;
           }},
          shows_all};
}

Dimension pages() {
  Edits values;
  for (const Index size : {0, 16, 32, 64, 1, 128, 256, 8, 4, 512}) {
    values.emplace_back([size](Problem& p) {
      p.page_size = size;
      p.page_order = size > 0 ? 1 : 0;
    });
  }
  return {"page_size",
          [](Problem& to, const Problem& from) {
            to.page_size = from.page_size;
            to.page_order = from.page_order;
          },
          values, [](const Needs& n) { return n.pages; }};
}

template <std::size_t... kBits>
void add_strided(std::vector<Dimension>& table, std::index_sequence<kBits...>) {
  static constexpr std::string_view kNames[] = {
      "gaps in q",    "gaps in k",    "gaps in v",      "gaps in o",     "gaps in lse",
      "gaps in bias", "gaps in mask", "gaps in scales", "gaps in table", "gaps in new rows"};
  (table.push_back({kNames[kBits],
                    [](Problem& to, const Problem& from) {
                      to.strided = (to.strided & ~(1U << kBits)) | (from.strided & (1U << kBits));
                    },
                    {[](Problem& p) { p.strided &= ~(1U << kBits); },
                     [](Problem& p) { p.strided |= 1U << kBits; }},
                    never}),
   ...);
}

std::vector<Dimension> made() {
  std::vector<Dimension> table{
      formats(),
      cache(),
      widths(),
      pages(),
      heads(),
      flag<&Problem::causal>("causal", shows_all),
      field<&Problem::alignment>("alignment", never, Alignment::bottom_right, Alignment::top_left),
      window(),
      field<&Problem::ring>("ring", never, 0, 24),
      field<&Problem::batch>(
          "batch", [](const Needs& n) { return n.neighbours; }, 1, 2, 3, 9),
      field<&Problem::queries>("seqlen_q", shows_all, 1, 8, 2, 4, 3, 17, 64, 128),
      field<&Problem::keys>("seqlen_kv", shows_all, 64, 17, 128, 65, 1, 256, 0),
      lengths<&Problem::query_lengths, &Problem::queries>("query_lengths"),
      lengths<&Problem::key_lengths, &Problem::keys>("kv_lengths"),
      flag<&Problem::mask>("mask", shows_all),
      flag<&Problem::bias>("bias", shows_all),
      flag<&Problem::alibi>("alibi", never),
      flag<&Problem::sinks>("sinks", never),
      field<&Problem::softcap>("softcap", never, 0.0, 30.0),
      {"scale",
       [](Problem& to, const Problem& from) {
         to.scale = from.scale == default_scale(from.depth) ? default_scale(to.depth) : from.scale;
       },
       {[](Problem& p) { p.scale = default_scale(p.depth); }, [](Problem& p) { p.scale = 0.3F; },
        [](Problem& p) { p.scale = -0.4F; }},
       never},
      field<&Problem::empty_row>("empty_row", never, EmptyRow::zero, EmptyRow::nan),
      field<&Problem::empty_lse>("empty_lse", never, EmptyLse::minus_inf, EmptyLse::plus_inf),
      field<&Problem::lse_base>("lse", never, LogBase::e, LogBase::none, LogBase::two),
      field<&Problem::layout>("layout", never, Layout::bhtd, Layout::bthd),
      field<&Problem::spare_slots>("spare_slots", never, 0, 3, 16),
      field<&Problem::splits>("splits", never, 1, 2, 3, 7),
      field<&Problem::chunk>("chunk", never, 1, 2, 16, 17),
      field<&Problem::rope>("rope", never, Rope::none, Rope::halves, Rope::pairs),
  };
  add_strided(table, std::make_index_sequence<kStridedCount>());
  return table;
}

}  // namespace

std::span<const Dimension> dimensions() {
  static const std::vector<Dimension> table = made();
  return table;
}

const Dimension& dimension_named(std::string_view name) {
  const auto at = std::ranges::find(dimensions(), name, &Dimension::name);
  if (at == dimensions().end()) throw Error(fmt::format("no dimension is called '{}'", name));
  return *at;
}

bool same(const Dimension& dimension, const Problem& a, const Problem& b) {
  Problem taken = a;
  dimension.take(taken, b);
  return taken == a;
}

void follow_edit(Problem& problem, const Problem& before) {
  put_right(problem, before);
  forget_same_cache(problem);
}

}  // namespace attest
