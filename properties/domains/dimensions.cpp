// The table. What is coupled in every kernel (input and output format, both widths) is one row.
#include "properties/domains/dimensions.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>

#include "properties/domains/dimension_rows.hpp"
#include "reference/formats.hpp"
#include "reference/text.hpp"
#include "reference/validity.hpp"

namespace attest {
namespace {

using namespace rows;

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
  return paired({"formats",
                 [](Problem& to, const Problem& from) {
                   to.input = from.input;
                   to.output = from.output;
                 },
                 values, never},
                any, [](const Problem& p) {
                  return fmt::format("in={} out={}", name_of(p.input), name_of(p.output));
                });
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
  return paired({"cache",
                 [](Problem& to, const Problem& from) {
                   to.cache = from.cache;
                   to.scales = from.scales;
                   forget_same_cache(to);
                 },
                 values, keeps_cache},
                stored, [](const Problem& p) -> std::string {
                  if (!p.cache) return "cache as input";
                  if (bytes_of(*p.cache) != 1) return fmt::format("cache={}", name_of(*p.cache));
                  return fmt::format("cache={} scales={}", name_of(*p.cache), name_of(p.scales));
                });
}

Dimension widths() {
  Edits values;
  for (const auto& [head_dim, head_dim_v] : {std::pair<Index, Index>{64, 64},
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
    values.emplace_back([head_dim = head_dim, head_dim_v = head_dim_v](Problem& p) {
      p.head_dim = head_dim;
      p.head_dim_v = head_dim_v;
    });
  }
  return single({"head_dim",
                 [](Problem& to, const Problem& from) {
                   to.head_dim = from.head_dim;
                   to.head_dim_v = from.head_dim_v;
                 },
                 values, never},
                any, [](const Problem& p) {
                  return p.head_dim == p.head_dim_v
                             ? fmt::format("head_dim={}", p.head_dim)
                             : fmt::format("head_dim={} head_dim_v={}", p.head_dim, p.head_dim_v);
                });
}

Dimension heads() {
  Edits values;
  for (const auto& [num_heads_kv, group] : {std::pair<Index, Index>{1, 1},
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
    values.emplace_back([num_heads_kv = num_heads_kv, group = group](Problem& p) {
      p.num_heads_kv = num_heads_kv;
      p.num_heads_q = num_heads_kv * group;
    });
  }
  return paired(
      {"heads",
       [](Problem& to, const Problem& from) {
         to.num_heads_kv = from.num_heads_kv;
         to.num_heads_q = from.num_heads_q;
       },
       values, never},
      heads_and_rows,
      [](const Problem& p) -> std::string {
        if (p.num_heads_q == p.num_heads_kv) return p.num_heads_kv == 1 ? "one head" : "MHA";
        return p.num_heads_kv == 1 ? "MQA" : "GQA";
      },
      [](const Problem& p) {
        return fmt::format("num_heads_kv={} group={}", p.num_heads_kv,
                           p.num_heads_q / p.num_heads_kv);
      });
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
  return paired({"window",
                 [](Problem& to, const Problem& from) {
                   to.window_left = from.window_left;
                   to.window_right = from.window_right;
                 },
                 values, shows_all},
                attention, [](const Problem& p) -> std::string {
                  const bool left = p.window_left >= 0, right = p.window_right >= 0;
                  if (left && right) return "window on both sides";
                  return left ? "window to the left" : right ? "window to the right" : "no window";
                });
}

template <std::vector<Index> Problem::*kLengths, Index Problem::*kFull>
Dimension lengths(std::string_view name, bool (*asked_by)(Operation)) {
  return {name,
          take_field<kLengths>,
          {[](Problem& p) { (p.*kLengths).clear(); },
           [](Problem& p) {
             (p.*kLengths).assign(static_cast<std::size_t>(p.batch), p.*kFull);
             (p.*kLengths).front() = p.*kFull / 2;
           }},
          shows_all,
          asked_by,
          has(name, [](const Problem& p) { return !(p.*kLengths).empty(); }),
          has(name, [](const Problem& p) { return !(p.*kLengths).empty(); })};
}

Dimension pages() {
  Edits values;
  for (const Index size : {0, 16, 32, 64, 1, 128, 256, 8, 4, 512}) {
    values.emplace_back([size](Problem& p) {
      p.page_size = size;
      p.page_order = size > 0 ? 1 : 0;
    });
  }
  return paired({"page_size",
                 [](Problem& to, const Problem& from) {
                   to.page_size = from.page_size;
                   to.page_order = from.page_order;
                 },
                 values, [](const Needs& n) { return n.pages; }},
                stored, has("pages", [](const Problem& p) { return p.page_size > 0; }),
                number<&Problem::page_size>("page_size"));
}

/// Whether the operation is given the tensor.
template <Strided kTensor>
bool lies_before(Operation operation) {
  switch (kTensor) {
    case Strided::k:
    case Strided::v:
      return operation != Operation::projection;
    case Strided::scales:
    case Strided::table:
      return cached(operation);
    case Strided::fresh:
      return append(operation);
    default:
      return attention(operation);
  }
}

/// Of whatever is strided; on its own it is tried with q.
Dimension far_strides() {
  constexpr std::uint32_t kFar = 1U << static_cast<unsigned>(Strided::far);
  return paired({"far strides",
                 [](Problem& to, const Problem& from) {
                   to.strided = (to.strided & ~kFar) | (from.strided & kFar);
                 },
                 {[](Problem& p) { p.strided &= ~kFar; }, [](Problem& p) { p.strided |= kFar; },
                  [](Problem& p) { p.strided |= kFar | 1U; }},
                 never},
                heads_and_rows, has("far strides", is_far));
}

template <std::size_t... kBits>
void add_strided(std::vector<Dimension>& table, std::index_sequence<kBits...>) {
  static constexpr std::string_view kNames[] = {
      "gaps in q",    "gaps in k",    "gaps in v",      "gaps in o",     "gaps in lse",
      "gaps in bias", "gaps in mask", "gaps in scales", "gaps in table", "gaps in new rows"};
  (table.push_back(
       paired({kNames[kBits],
               [](Problem& to, const Problem& from) {
                 to.strided = (to.strided & ~(1U << kBits)) | (from.strided & (1U << kBits));
               },
               {[](Problem& p) { p.strided &= ~(1U << kBits); },
                [](Problem& p) { p.strided |= 1U << kBits; }},
               never},
              lies_before<static_cast<Strided>(kBits)>,
              has(kNames[kBits],
                  [](const Problem& p) { return is_strided(p, static_cast<Strided>(kBits)); }))),
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
      paired(field<&Problem::alignment>("alignment", never, Alignment::bottom_right,
                                        Alignment::top_left),
             attention, choice<&Problem::alignment>("alignment")),
      window(),
      paired(field<&Problem::ring>("ring", never, 0, 24), cached,
             has("ring", [](const Problem& p) { return p.ring > 0; })),
      single(field<&Problem::batch>(
                 "batch", [](const Needs& n) { return n.neighbours; }, 1, 2, 3, 9),
             any, number<&Problem::batch>("batch")),
      single(field<&Problem::seqlen_q>("seqlen_q", shows_all, 1, 8, 2, 4, 3, 17, 64, 128),
             attention, number<&Problem::seqlen_q>("seqlen_q")),
      single(field<&Problem::seqlen_kv>("seqlen_kv", shows_all, 64, 17, 128, 65, 1, 256, 0),
             sequences, number<&Problem::seqlen_kv>("seqlen_kv")),
      lengths<&Problem::seqlens_q, &Problem::seqlen_q>("seqlens_q", attention),
      lengths<&Problem::seqlens_kv, &Problem::seqlen_kv>("kv_lengths", sequences),
      flag<&Problem::mask>("mask", shows_all),
      flag<&Problem::bias>("bias", shows_all, biased),
      flag<&Problem::alibi>("alibi", never),
      flag<&Problem::sinks>("sinks", never),
      paired(field<&Problem::softcap>("softcap", never, 0.0, 30.0), attention,
             has("softcap", [](const Problem& p) { return p.softcap > 0; })),
      paired({"scale",
              [](Problem& to, const Problem& from) {
                to.softmax_scale = from.softmax_scale == default_scale(from.head_dim)
                                       ? default_scale(to.head_dim)
                                       : from.softmax_scale;
              },
              {[](Problem& p) { p.softmax_scale = default_scale(p.head_dim); },
               [](Problem& p) { p.softmax_scale = 0.3F; },
               [](Problem& p) { p.softmax_scale = -0.4F; }},
              never},
             attention,
             [](const Problem& p) -> std::string {
               if (p.softmax_scale == default_scale(p.head_dim)) return "usual scale";
               return p.softmax_scale < 0 ? "negative scale" : "other scale";
             }),
      paired(field<&Problem::empty_row>("empty_row", never, EmptyRow::zero, EmptyRow::nan),
             attention, choice<&Problem::empty_row>("empty")),
      paired(
          field<&Problem::empty_lse>("empty_lse", never, EmptyLse::minus_inf, EmptyLse::plus_inf),
          attention, choice<&Problem::empty_lse>("empty_lse")),
      paired(field<&Problem::lse_base>("lse", never, LogBase::e, LogBase::none, LogBase::two),
             attention, choice<&Problem::lse_base>("lse")),
      paired(field<&Problem::layout>("layout", never, Layout::bhtd, Layout::bthd), heads_and_rows,
             choice<&Problem::layout>("layout")),
      paired(field<&Problem::spare_slots>("spare_slots", never, 0, 3, 16), sequences,
             has("spare slots", [](const Problem& p) { return p.spare_slots > 0; })),
      paired(field<&Problem::num_splits>("splits", never, 1, 2, 3, 7), decode,
             has("splits", [](const Problem& p) { return p.num_splits > 1; })),
      single(field<&Problem::chunk>("chunk", never, 1, 2, 16, 17), append,
             number<&Problem::chunk>("chunk")),
      paired(field<&Problem::rope>("rope", never, Rope::none, Rope::halves, Rope::pairs), append,
             choice<&Problem::rope>("rope")),
  };
  add_strided(table, std::make_index_sequence<kStridedCount>());
  table.push_back(far_strides());
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
