// Which Problems are possible. Everything that a Problem can say is checked here and nowhere else,
// so that no other code meets a Problem that makes no sense.
#include "reference/validity.hpp"

#include <fmt/format.h>

#include <cmath>
#include <initializer_list>

#include "reference/text.hpp"

namespace attest {
namespace {

using Found = std::optional<Illegality>;

Found at_least(std::string_view key, std::string_view field, Index value, Index least) {
  if (value >= least) return {};
  return Illegality{key, fmt::format("{} is {}; it must be at least {}", field, value, least)};
}

// All factors are non-negative; the product is never formed when it would overflow.
Found small_enough(std::string_view key, std::string_view tensor,
                   std::initializer_list<Index> factors) {
  Index product = 1;
  for (Index factor : factors) {
    if (factor == 0) return {};
  }
  for (Index factor : factors) {
    if (factor > kElementsMax / product) {
      return Illegality{key, fmt::format("{} would have more than 2^31 elements", tensor)};
    }
    product *= factor;
  }
  return {};
}

Found lengths_fit(std::string_view key, std::string_view field, const std::vector<Index>& lengths,
                  Index batch, Index most, std::string_view bound) {
  if (lengths.empty()) return {};
  if (static_cast<Index>(lengths.size()) != batch) {
    return Illegality{key, fmt::format("{} has {} entries; batch is {}, and each entry needs one",
                                       field, lengths.size(), batch)};
  }
  for (Index length : lengths) {
    if (length < 0 || length > most) {
      return Illegality{
          key, fmt::format("{} holds {}; legal are 0 to {} = {}", field, length, bound, most)};
    }
  }
  return {};
}

template <class... Checks>
Found first_of(Checks... checks) {
  Found found;
  (void)((found = checks()) || ...);
  return found;
}

Found extents(const Problem& p) {
  return first_of([&] { return at_least("q", "batch", p.batch, 1); },
                  [&] { return at_least("q", "query_heads", p.query_heads, 1); },
                  [&] { return at_least("q", "queries", p.queries, 1); },
                  [&] { return at_least("q", "depth", p.depth, 1); },
                  [&] { return at_least("kv", "kv_heads", p.kv_heads, 1); },
                  [&] { return at_least("kv", "keys", p.keys, 0); },
                  [&] { return at_least("kv", "v_depth", p.v_depth, 1); },
                  [&]() -> Found {
                    if (p.query_heads % p.kv_heads == 0) return {};
                    return Illegality{
                        "kv", fmt::format("kv_heads {} does not divide query_heads {}", p.kv_heads,
                                          p.query_heads)};
                  });
}

Found numbers(const Problem& p) {
  if (p.output == Format::e4m3 || p.output == Format::e5m2) {
    return Illegality{"out", fmt::format("{} cannot be an output format: the rounding would hide "
                                         "every error worth seeing; legal are f32, f16, bf16",
                                         name_of(p.output))};
  }
  if (!std::isfinite(p.scale)) return Illegality{"scale", "scale is not finite"};
  if (!std::isfinite(p.softcap) || p.softcap < 0) {
    return Illegality{"softcap", "softcap must be finite and not negative; 0 is off"};
  }
  return first_of([&] { return at_least("window", "window_left", p.window_left, kUnbounded); },
                  [&] { return at_least("window", "window_right", p.window_right, kUnbounded); },
                  [&] { return at_least("spare", "spare_slots", p.spare_slots, 0); },
                  [&] { return at_least("splits", "splits", p.splits, 1); },
                  [&] { return at_least("chunk", "chunk", p.chunk, 1); });
}

Found sizes(const Problem& p) {
  const Index wider = p.depth > p.v_depth ? p.depth : p.v_depth;
  const auto slots = [&](std::string_view key) {
    // keys and spare_slots are each at most 2^31 once this is asked, so the sum cannot overflow.
    return small_enough(key, "the cache", {p.batch, p.kv_heads, p.keys + p.spare_slots, wider});
  };
  return first_of(
      [&] {
        return small_enough("q", "q", {p.batch, p.query_heads, p.queries, p.depth});
      },
      [&] {
        return small_enough("kv", "k or v", {p.batch, p.kv_heads, p.keys, wider});
      },
      [&] {
        return small_enough("kv", "o", {p.batch, p.query_heads, p.queries, p.v_depth});
      },
      [&] { return small_enough("kv", "the longest row", {p.keys}); },
      [&] { return small_enough("spare", "the cache", {p.spare_slots}); },
      [&] { return slots(p.spare_slots > 0 ? "spare" : "kv"); },
      [&]() -> Found {
        if (!p.bias) return {};
        return small_enough("bias", "bias", {p.batch, p.query_heads, p.queries, p.keys});
      },
      [&]() -> Found {
        if (!p.mask) return {};
        return small_enough("mask", "mask", {p.batch, p.queries, p.keys});
      },
      [&]() -> Found {
        if (p.splits == 1) return {};
        return small_enough("splits", "the partial results of all splits",
                            {p.splits, p.batch, p.query_heads, p.queries, p.v_depth});
      });
}

}  // namespace

std::optional<Illegality> illegality(const Problem& p) {
  return first_of(
      [&] { return extents(p); }, [&] { return numbers(p); }, [&] { return sizes(p); },
      [&] {
        return lengths_fit("q_len", "query_lengths", p.query_lengths, p.batch, p.queries,
                           "queries");
      },
      [&] { return lengths_fit("kv_len", "key_lengths", p.key_lengths, p.batch, p.keys, "keys"); });
}

std::string invalidity(const Problem& problem) {
  const auto found = illegality(problem);
  return found ? found->reason : std::string();
}

}  // namespace attest
