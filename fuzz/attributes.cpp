// The tables. What names mean is said by the words of a case line, words by the table of features.
#include "fuzz/attributes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <numeric>

#include "fuzz/features.hpp"
#include "reference/case_words.hpp"
#include "reference/names.hpp"
#include "reference/text.hpp"

namespace attest {
namespace {

constexpr std::uint32_t bits_of(std::initializer_list<Operation> operations) {
  std::uint32_t bits = 0;
  for (const Operation operation : operations) bits |= 1U << static_cast<unsigned>(operation);
  return bits;
}
constexpr std::uint32_t kAll = (1U << kOperationCount) - 1;
constexpr std::uint32_t kAttention = bits_of({Operation::prefill, Operation::decode});
constexpr std::uint32_t kCaches =
    bits_of({Operation::decode, Operation::append, Operation::copy_pages});
constexpr std::uint32_t kTokens =
    bits_of({Operation::prefill, Operation::decode, Operation::append});
constexpr std::uint32_t kDecode = bits_of({Operation::decode}),
                        kAppend = bits_of({Operation::append});

template <auto kField>
Index value_of(const Problem& p) {
  return static_cast<Index>(p.*kField);
}
template <Index Problem::*kField>
void put(Problem& p, Index value) {
  p.*kField = value;
}

/// Both widths: whoever asks for another one of v says head_dim_v too.
void put_head_dim(Problem& p, Index value) {
  p.head_dim = p.head_dim_v = value;
}
void put_num_heads_q(Problem& p, Index value) {
  p.num_heads_q = value;
  p.num_heads_kv = std::max<Index>(std::gcd(p.num_heads_kv, value), 1);
}
Index group_of(const Problem& p) {
  return p.num_heads_q / p.num_heads_kv;
}
void put_num_heads_q_of_groups(Problem& p, Index value) {
  p.num_heads_kv = std::max<Index>(value / std::max<Index>(group_of(p), 1), 1);
  p.num_heads_q = value;
}
void put_num_heads_kv_alone(Problem& p, Index value) {
  if (value > 0) p.num_heads_kv = value;  // none at all is no Problem, and has no groups
}
void put_num_heads_kv(Problem& p, Index value) {
  p.num_heads_q = value * group_of(p);
  put_num_heads_kv_alone(p, value);
}
void put_group(Problem& p, Index value) {
  p.num_heads_q = p.num_heads_kv * value;
}
void put_group_by_kv_heads(Problem& p, Index value) {
  if (value > 0) p.num_heads_kv = std::max<Index>(p.num_heads_q / value, 1);
}
void put_pages(Problem& p, Index value) {
  p.page_size = value;
  if (value > 0) p.ring = 0;
}
void put_spare(Problem& p, Index value) {
  p.spare_slots = value;
  if (value > 0) p.ring = 0;
}
/// As much of a window as the ring holds.
void put_ring(Problem& p, Index value) {
  p.ring = value;
  if (value <= 0) return;
  p.page_size = p.page_order = p.spare_slots = 0;
  p.alignment = Alignment::bottom_right;
  p.seqlen_q = std::min(p.seqlen_q, value);
  const Index most = value - p.seqlen_q;
  if (p.window_left == kUnbounded || p.window_left > most) p.window_left = most;
}

constexpr std::array kNumbers{
    Attribute{"head_dim", "",
              "width of q and k, and of v unless head_dim_v or unequal_depths is said", kAll,
              value_of<&Problem::head_dim>, nullptr, put_head_dim},
    Attribute{"head_dim_v", "", "width of v and o", kAll, value_of<&Problem::head_dim_v>, nullptr,
              put<&Problem::head_dim_v>},
    Attribute{"seqlen_q", "queries", "rows of q, the most that a batch entry has", kAttention,
              value_of<&Problem::seqlen_q>, nullptr, put<&Problem::seqlen_q>},
    Attribute{"seqlen_kv", "keys", "keys, the most that a batch entry has", kTokens,
              value_of<&Problem::seqlen_kv>, nullptr, put<&Problem::seqlen_kv>},
    Attribute{"batch", "", "batch entries", kTokens, value_of<&Problem::batch>, nullptr,
              put<&Problem::batch>},
    Attribute{"num_heads_q", "heads", "query heads", kAttention, value_of<&Problem::num_heads_q>,
              nullptr, put_num_heads_q, nullptr, put_num_heads_q_of_groups},
    Attribute{"num_heads_kv", "kv_heads", "KV heads", kTokens, value_of<&Problem::num_heads_kv>,
              nullptr, put_num_heads_kv, nullptr, put_num_heads_kv_alone},
    Attribute{"group", "", "query heads of a KV head", kAttention, group_of, nullptr, put_group,
              nullptr, put_group_by_kv_heads},
    Attribute{"page", "page_size", "slots of a page of the cache; 0: no pages", kCaches,
              value_of<&Problem::page_size>, nullptr, put_pages},
    Attribute{"ring", "", "slots of a cache that is a ring; 0: it is none", kCaches,
              value_of<&Problem::ring>, nullptr, put_ring},
    Attribute{"spare", "", "cache slots behind the last key", kCaches,
              value_of<&Problem::spare_slots>, nullptr, put_spare},
    Attribute{"splits", "num_splits", "parts of the keys in a decode", kDecode,
              value_of<&Problem::num_splits>, nullptr, put<&Problem::num_splits>},
    Attribute{"chunk", "", "tokens of an append", kAppend, value_of<&Problem::chunk>, nullptr,
              put<&Problem::chunk>},
};

Index cache_value(const Problem& p) {
  return static_cast<Index>(cache_format(p));
}

constexpr std::array kNames{
    Attribute{"in", "", "", kAll, value_of<&Problem::input>, nullptr, nullptr, format_names},
    Attribute{"out", "", "", kAttention | bits_of({Operation::projection}),
              value_of<&Problem::output>, nullptr, nullptr, format_names},
    Attribute{"cache", "", "", kCaches, cache_value, nullptr, nullptr, format_names},
    Attribute{"scales", "", "", kDecode | kAppend, value_of<&Problem::scales>, nullptr, nullptr,
              scales_names},
    Attribute{"layout", "", "", kTokens, value_of<&Problem::layout>, nullptr, nullptr,
              layout_names},
    Attribute{"lse", "", "", kAttention, value_of<&Problem::lse_base>, nullptr, nullptr,
              log_base_names},
    Attribute{"align", "", "", kAttention, value_of<&Problem::alignment>, nullptr, nullptr,
              alignment_names},
    Attribute{"empty", "", "", kAttention, value_of<&Problem::empty_row>, nullptr, nullptr,
              empty_row_names},
    Attribute{"empty_lse", "", "", kAttention, value_of<&Problem::empty_lse>, nullptr, nullptr,
              empty_lse_names},
    Attribute{"rope", "", "", kAppend, value_of<&Problem::rope>, nullptr, nullptr, rope_names},
};

/// Of words that speak of more than attention, or of less; all others are asked by attention.
struct AskedBy {
  std::string_view word;
  std::uint32_t operations;
};
constexpr std::array kAskedBy{
    AskedBy{"unequal_depths", kAll},    AskedBy{"lengths", kTokens},
    AskedBy{"no_keys", kTokens},        AskedBy{"pages", kCaches},
    AskedBy{"pages_permuted", kCaches}, AskedBy{"ring", kCaches},
    AskedBy{"spare_slots", kCaches},    AskedBy{"splits", kDecode},
    AskedBy{"rope", kAppend},           AskedBy{"strided", kTokens},
    AskedBy{"far_strides", kTokens},    AskedBy{"layout_bthd", kTokens},
};

std::uint32_t operations_of(std::string_view word) {
  const auto* const at = std::ranges::find(kAskedBy, word, &AskedBy::word);
  return at == kAskedBy.end() ? kAttention : at->operations;
}

/// A word of the field's for one of the table of features.
std::string_view also_called(std::string_view word) {
  if (word == "lengths") return "varlen";
  if (word == "pages") return "paged";
  return {};
}

std::vector<Attribute> made() {
  std::vector<Attribute> all(kNumbers.begin(), kNumbers.end());
  const std::vector<CaseWord> words = case_words();
  for (Attribute attribute : kNames) {
    attribute.what = std::ranges::find(words, attribute.name, &CaseWord::name)->what;
    all.push_back(attribute);
  }
  for (const Feature& feature : features()) {
    all.push_back({feature.name, also_called(feature.name), feature.what,
                   operations_of(feature.name), nullptr, feature.present});
  }
  return all;
}

}  // namespace

const std::vector<Attribute>& attributes() {
  static const std::vector<Attribute> all = made();
  return all;
}

std::string form_of(const Attribute& attribute) {
  if (attribute.is_word()) return std::string(attribute.name);
  if (attribute.names == nullptr) return fmt::format("{}=NUMBER", attribute.name);
  return fmt::format("{}={}", attribute.name, fmt::join(attribute.names(), "|"));
}

std::string meaning_of(const Attribute& attribute) {
  std::string text(attribute.what);
  if (!attribute.also.empty()) text += fmt::format("; also {}", attribute.also);
  if (attribute.asked_by == kAll) return text;
  std::vector<std::string_view> operations;
  for (std::size_t n = 0; n < kOperationCount; ++n) {
    const auto operation = static_cast<Operation>(n);
    if (attribute.is_asked_by(operation)) operations.push_back(name_of(operation));
  }
  return text + fmt::format("; asked of {}", fmt::join(operations, ", "));
}

}  // namespace attest
