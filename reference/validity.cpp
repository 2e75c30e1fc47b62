// Which Problems are possible. Everything that a Problem can say is checked here and nowhere else,
// so that no other code meets a Problem that makes no sense.
#include "reference/validity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "reference/formats.hpp"
#include "reference/text.hpp"

namespace attest {
namespace {

using Found = std::optional<Illegality>;

std::uint32_t far_bit() {
  return 1U << static_cast<unsigned>(Strided::far);
}

Found at_least(std::string_view key, std::string_view field, Index value, Index least) {
  if (value >= least) return {};
  return Illegality{key, fmt::format("{} is {}; it must be at least {}", field, value, least)};
}

Found between(std::string_view key, std::string_view field, Index value, Index least, Index most) {
  if (value > most) {
    return Illegality{key, fmt::format("{} is {}; it must be at most {}", field, value, most)};
  }
  return at_least(key, field, value, least);
}

// The product of the extents, none negative, or kElementsMax + 1 if it is larger: never formed when
// it would overflow.
Index elements_of(std::initializer_list<Index> extents) {
  for (const Index extent : extents) {
    if (extent == 0) return 0;
  }
  Index product = 1;
  for (const Index extent : extents) {
    if (extent > kElementsMax / product) return kElementsMax + 1;
    product *= extent;
  }
  return product;
}

/// Which key to blame for a tensor's size, what the tensor is called, and its size.
struct Sized {
  std::string_view key;
  std::string_view tensor;
  Index elements;
};

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
                  [&] { return at_least("q", "num_heads_q", p.num_heads_q, 1); },
                  [&] { return at_least("q", "queries", p.seqlen_q, 1); },
                  [&] { return at_least("q", "head_dim", p.head_dim, 1); },
                  [&] { return at_least("kv", "num_heads_kv", p.num_heads_kv, 1); },
                  [&] { return at_least("kv", "keys", p.seqlen_kv, 0); },
                  [&] { return at_least("kv", "head_dim_v", p.head_dim_v, 1); },
                  [&]() -> Found {
                    if (p.num_heads_q % p.num_heads_kv == 0) return {};
                    return Illegality{"kv",
                                      fmt::format("num_heads_kv {} does not divide num_heads_q {}",
                                                  p.num_heads_kv, p.num_heads_q)};
                  });
}

Found numbers(const Problem& p) {
  if (bytes_of(p.output) == 1) {
    return Illegality{"out", fmt::format("{} cannot be an output format: the rounding would hide "
                                         "every error worth seeing; legal are f32, f16, bf16",
                                         name_of(p.output))};
  }
  if (!std::isfinite(p.softmax_scale)) return Illegality{"scale", "scale is not finite"};
  if (!std::isfinite(p.softcap) || p.softcap < 0) {
    return Illegality{"softcap", "softcap must be finite and not negative; 0 is off"};
  }
  return first_of([&] { return at_least("window", "window_left", p.window_left, kUnbounded); },
                  [&] { return at_least("window", "window_right", p.window_right, kUnbounded); },
                  [&] { return at_least("spare", "spare_slots", p.spare_slots, 0); },
                  [&] { return between("splits", "splits", p.num_splits, 1, kPartsMax); },
                  [&] { return between("chunk", "chunk", p.chunk, 1, kPartsMax); });
}

Found cache(const Problem& p) {
  const Format stored = cache_format(p);
  if (p.input == Format::i8) {
    return Illegality{"in", "i8 is a format of caches only; say cache=i8"};
  }
  if (p.scales != Scales::none && (!p.cache || bytes_of(stored) != 1)) {
    return Illegality{"scales", "only an 8-bit cache has scales; say cache=e4m3, e5m2 or i8"};
  }
  if (p.rope != Rope::none && p.head_dim % 2 != 0) {
    return Illegality{"rope",
                      fmt::format("head_dim is {}; columns are turned in pairs", p.head_dim)};
  }
  if (p.ring > 0) {
    if (p.page_size > 0 || p.spare_slots > 0) {
      return Illegality{"ring", "a ring has neither pages nor spare slots"};
    }
    if (p.window_left == kUnbounded || p.alignment != Alignment::bottom_right) {
      return Illegality{"ring", "a ring forgets: it needs a left window, aligned bottom_right"};
    }
    const Index least = p.window_left > kElementsMax ? kElementsMax : p.window_left + p.seqlen_q;
    if (p.ring < least) {
      return Illegality{"ring", fmt::format("ring is {}; a left window of {} and {} queries need "
                                            "{} slots",
                                            p.ring, p.window_left, p.seqlen_q, least)};
    }
  }
  return first_of([&] { return between("page", "page_size", p.page_size, 0, kPartsMax); },
                  [&] { return between("order", "page_order", p.page_order, 0, kPartsMax); },
                  [&] { return between("ring", "ring", p.ring, 0, kElementsMax); });
}

// The largest tensor is blamed, though it may be the sum that is too large.
Found sizes(const Problem& p) {
  // Each at most kElementsMax + 1, so that the sum cannot overflow.
  // A page may be partly used, per batch entry, and one more is never referred to.
  const Index slots = std::min(p.seqlen_kv, kElementsMax + 1) +
                      std::min(p.spare_slots, kElementsMax + 1) + 2 * p.page_size + p.ring;
  const std::string_view cache = p.spare_slots > p.seqlen_kv ? "spare" : "kv";
  const Index chunk = p.chunk > 1 ? p.chunk : 0;  // the rest is counted where it is in use
  const Index splits = p.num_splits > 1 ? p.num_splits : 0;
  const Sized tensors[] = {
      {"q", "q", elements_of({p.batch, p.num_heads_q, p.seqlen_q, p.head_dim})},
      {cache, "k", elements_of({p.batch, p.num_heads_kv, slots, p.head_dim})},
      {cache, "v", elements_of({p.batch, p.num_heads_kv, slots, p.head_dim_v})},
      {"q", "o", elements_of({p.batch, p.num_heads_q, p.seqlen_q, p.head_dim_v})},
      {"bias", "bias", elements_of({p.bias ? p.batch : 0, p.num_heads_q, p.seqlen_q, p.seqlen_kv})},
      {"mask", "mask", elements_of({p.mask ? p.batch : 0, p.seqlen_q, p.seqlen_kv})},
      {"chunk", "the rows of one chunk of k",
       elements_of({p.batch, p.num_heads_kv, chunk, p.head_dim})},
      {"chunk", "the rows of one chunk of v",
       elements_of({p.batch, p.num_heads_kv, chunk, p.head_dim_v})},
      {"splits", "the results of all splits",
       elements_of({splits, p.batch, p.num_heads_q, p.seqlen_q, p.head_dim_v})},
  };
  Index together = 0;
  const Sized* largest = tensors;
  for (const Sized& sized : tensors) {
    together += sized.elements;
    if (sized.elements > largest->elements) largest = &sized;
  }
  if (together <= kElementsMax) return {};
  return Illegality{largest->key,
                    fmt::format("all tensors together would have more than 2^28 elements; the "
                                "largest is {}",
                                largest->tensor)};
}

}  // namespace

std::optional<Illegality> illegality(const Problem& p) {
  return first_of(
      [&] { return extents(p); }, [&] { return numbers(p); }, [&] { return cache(p); },
      [&] { return sizes(p); },
      [&]() -> Found {
        if (p.strided != far_bit()) return {};
        return Illegality{"strided", "far says how wide gaps are; name a tensor that has them"};
      },
      [&] {
        return lengths_fit("q_len", "seqlens_q", p.seqlens_q, p.batch, p.seqlen_q, "queries");
      },
      [&] {
        return lengths_fit("kv_len", "seqlens_kv", p.seqlens_kv, p.batch, p.seqlen_kv, "keys");
      });
}

std::string invalidity(const Problem& problem) {
  const auto found = illegality(problem);
  return found ? found->reason : std::string();
}

void put_right(Problem& problem, const Problem& before) {
  const auto fit = [&problem](std::vector<Index>& lengths, Index full) {
    if (lengths.empty()) return;
    lengths.resize(static_cast<std::size_t>(problem.batch), full);
    for (Index& length : lengths) length = std::min(length, full);
  };
  fit(problem.seqlens_q, problem.seqlen_q);
  fit(problem.seqlens_kv, problem.seqlen_kv);
  if (problem.strided == far_bit()) problem.strided = 0;
  const bool scale_follows = before.softmax_scale == default_scale(before.head_dim) &&
                             problem.softmax_scale == before.softmax_scale;
  if (scale_follows && problem.head_dim > 0)
    problem.softmax_scale = default_scale(problem.head_dim);
}

}  // namespace attest
