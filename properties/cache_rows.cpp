// Rows of caches, number by number: clarity before speed.
#include "properties/cache_rows.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "properties/counter_random.hpp"
#include "reference/bound/constants.hpp"
#include "reference/formats.hpp"

namespace attest {
namespace {

/// The largest magnitude in what shares the scale of row (b, h, row).
double largest_near(const Tensor& numbers, Scales scales, Index b, Index h, Index row) {
  const Extent4& extent = numbers.extent;
  const bool all = scales == Scales::tensor, head = all || scales == Scales::head;
  double largest = 0;
  for (Index entry = head ? 0 : b; entry < (head ? extent[0] : b + 1); ++entry) {
    for (Index g = all ? 0 : h; g < (all ? extent[1] : h + 1); ++g) {
      for (Index j = head ? 0 : row; j < (head ? extent[2] : row + 1); ++j) {
        for (Index c = 0; c < extent[3]; ++c) {
          largest = std::fmax(largest, std::fabs(numbers.at(entry, g, j, c)));
        }
      }
    }
  }
  return largest;
}

Tensor scales_of(const Problem& problem, const Tensor& numbers) {
  Problem shape = problem;  // of these numbers, however many entries and heads they have
  shape.batch = numbers.extent[0];
  shape.num_heads_kv = numbers.extent[1];
  Tensor scales(Format::f32, scales_extent(shape, numbers.extent[2]));
  Index flat = 0;
  for (Index b = 0; b < scales.extent[0]; ++b) {
    for (Index h = 0; h < scales.extent[1]; ++h) {
      for (Index row = 0; row < scales.extent[2]; ++row) {
        const double largest = largest_near(numbers, problem.scales, b, h, row);
        scales.set(flat++, scale_for(cache_format(problem), largest));
      }
    }
  }
  return scales;
}

/// The two columns that angle c of head_dim / 2 = half angles turns.
std::pair<std::size_t, std::size_t> turned_together(Rope rope, Index half, Index c) {
  return rope == Rope::halves ? std::pair<std::size_t, std::size_t>(c, c + half)
                              : std::pair<std::size_t, std::size_t>(2 * c, 2 * c + 1);
}

}  // namespace

double scale_for(Format format, double largest) {
  if (largest == 0) return 1;
  const double scale = rounded(Format::f32, largest / facts(format).max_finite);
  return std::max(scale, smallest_normal(Format::f32));
}

CacheRows stored_rows(const Problem& problem, const Tensor& numbers) {
  const Format format = cache_format(problem);
  CacheRows rows{Tensor(format, numbers.extent), std::nullopt};
  if (problem.scales != Scales::none) rows.scales = scales_of(problem, numbers);
  Index flat = 0;
  for (Index b = 0; b < numbers.extent[0]; ++b) {
    for (Index h = 0; h < numbers.extent[1]; ++h) {
      for (Index row = 0; row < numbers.extent[2]; ++row) {
        const double scale = scale_at(rows.scales, b, h, row);
        for (Index c = 0; c < numbers.extent[3]; ++c, ++flat) {
          rows.numbers.set_bits(flat, encode_saturating(format, numbers.at(flat) / scale));
        }
      }
    }
  }
  return rows;
}

double number_at(const Tensor& stored, const std::optional<Tensor>& scales, Index b, Index h,
                 Index row, Index c) {
  return stored.at(b, h, row, c) * scale_at(scales, b, h, row);
}

std::vector<Turned> turned_row(Rope rope, const std::vector<double>& key,
                               const std::optional<Tensor>& rope_cos_sin, Index position) {
  std::vector<Turned> result;
  if (rope == Rope::none) {
    for (const double number : key) result.push_back({number, std::fabs(number)});
    return result;
  }
  result.resize(key.size());
  const auto half = static_cast<Index>(key.size() / 2);
  for (Index c = 0; c < half; ++c) {
    const auto [first, second] = turned_together(rope, half, c);
    const double x = key[first], y = key[second];
    const double cosine = rope_cos_sin->at(0, 0, position, c);
    const double sine = rope_cos_sin->at(0, 0, position, half + c);
    result[first] = {x * cosine - y * sine, std::fabs(x * cosine) + std::fabs(y * sine)};
    result[second] = {y * cosine + x * sine, std::fabs(y * cosine) + std::fabs(x * sine)};
  }
  return result;
}

double turn_error(double magnitude) {
  return bound::kTurnRoundings * bound::kU * bound::kRoom * magnitude + 3 * bound::kFlush;
}

ScaleRange scale_range(Format format, double least, double most) {
  const double largest = facts(format).max_finite;
  const double error = bound::kQuotientRoundings * bound::kU * bound::kRoom;
  return {least / largest * (1 - error), most / largest * (1 + error) + bound::kFlush};
}

Tensor patterned(Format format, Extent4 extent, std::uint64_t salt) {
  Tensor tensor(format, extent);
  for (Index flat = 0; flat < tensor.count(); ++flat) {
    tensor.set_bits(flat, random_bits(salt, Stream::other, 0, 0, 0, flat)[0]);
  }
  return tensor;
}

Tensor rows_between(const Tensor& tensor, Index first, Index last) {
  Tensor part(tensor.format, {tensor.extent[0], tensor.extent[1], last - first, tensor.extent[3]});
  Index flat = 0;
  for (Index b = 0; b < tensor.extent[0]; ++b) {
    for (Index h = 0; h < tensor.extent[1]; ++h) {
      for (Index row = first; row < last; ++row) {
        for (Index c = 0; c < tensor.extent[3]; ++c) {
          part.set_bits(flat++, tensor.bits(tensor.offset(b, h, row, c)));
        }
      }
    }
  }
  return part;
}

std::vector<double> row_at(const Tensor& tensor, Index b, Index h, Index row) {
  std::vector<double> numbers;
  for (Index c = 0; c < tensor.extent[3]; ++c) numbers.push_back(tensor.at(b, h, row, c));
  return numbers;
}

Tensor rotation_table(Index positions, Index head_dim) {
  Tensor table(Format::f32, {1, 1, positions, head_dim});
  for (Index p = 0; p < positions; ++p) {
    for (Index c = 0; c < head_dim / 2; ++c) {
      const auto bits = random_bits(0, Stream::other, 0, 1, p, c);
      const double t = (static_cast<double>(bits[0] % 2049U) - 1024) / 1024;  // tan of half of it
      table.set(0, 0, p, c, (1 - t * t) / (1 + t * t));
      table.set(0, 0, p, head_dim / 2 + c, 2 * t / (1 + t * t));
    }
  }
  return table;
}

std::optional<Index> row_in_slot(const Problem& problem, Index slot, Index first, Index count) {
  if (problem.ring == 0) {
    return slot >= first && slot < first + count ? std::optional(slot - first) : std::nullopt;
  }
  const Index last = first + count - 1, ring = problem.ring;
  const Index token = last - ((last - slot) % ring + ring) % ring;  // the last that takes the slot
  return count > 0 && token >= first ? std::optional(token - first) : std::nullopt;
}

bool stores_bits(const Problem& problem) {
  return problem.rope == Rope::none && problem.scales == Scales::none &&
         cache_format(problem) == problem.input;
}

namespace {

template <class Number>
class Appending {
 public:
  Appending(const Problem& problem, const CacheUpdate& update) : p_(problem), update_(update) {
    reply_.k = update.k;
    reply_.v = update.v;
    if (p_.scales != Scales::token) return;
    reply_.k_scales = *update.k_scales;
    reply_.v_scales = *update.v_scales;
  }

  Reply run() {
    for (Index b = 0; b < update_.k.extent[0]; ++b) {
      const Index first = update_.cache_seqlens[static_cast<std::size_t>(b)];
      const Index count = update_.new_seqlens[static_cast<std::size_t>(b)];
      for (Index slot = 0; slot < update_.k.extent[2]; ++slot) {
        const auto row = row_in_slot(p_, slot, first, count);
        if (!row) continue;
        for (Index h = 0; h < update_.k.extent[1]; ++h) {
          store(reply_.k, reply_.k_scales, update_.k_scales, update_.new_k, b, h, slot, *row,
                turned(b, h, *row, first + *row));
          store(reply_.v, reply_.v_scales, update_.v_scales, update_.new_v, b, h, slot, *row,
                numbers(update_.new_v, b, h, *row));
        }
      }
    }
    return std::move(reply_);
  }

 private:
  static std::vector<Number> numbers(const Tensor& rows, Index b, Index h, Index row) {
    std::vector<Number> result;
    for (Index c = 0; c < rows.extent[3]; ++c) {
      result.push_back(static_cast<Number>(rows.at(b, h, row, c)));
    }
    return result;
  }

  std::vector<Number> turned(Index b, Index h, Index row, Index position) const {
    std::vector<Number> k = numbers(update_.new_k, b, h, row);
    if (p_.rope == Rope::none) return k;
    const Index half = update_.new_k.extent[3] / 2;
    const Tensor& table = *update_.rope_cos_sin;
    for (Index c = 0; c < half; ++c) {
      const auto [first, second] = turned_together(p_.rope, half, c);
      Number& x = k[first];
      Number& y = k[second];
      const auto cosine = static_cast<Number>(table.at(0, 0, position, c));
      const auto sine = static_cast<Number>(table.at(0, 0, position, half + c));
      const Number turned_x = x * cosine - y * sine;
      y = y * cosine + x * sine;
      x = turned_x;
    }
    return k;
  }

  void store(Tensor& cache, Tensor& own_scales, const std::optional<Tensor>& given,
             const Tensor& rows, Index b, Index h, Index slot, Index row,
             const std::vector<Number>& numbers) const {
    Number scale = static_cast<Number>(p_.scales == Scales::token ? 1 : scale_at(given, b, h, 0));
    if (p_.scales == Scales::token) {
      Number largest = 0;
      for (const Number number : numbers) largest = std::max(largest, std::abs(number));
      scale = static_cast<Number>(scale_for(cache.format, static_cast<double>(largest)));
      own_scales.set(b, h, slot, 0, static_cast<double>(scale));
    }
    for (Index c = 0; c < cache.extent[3]; ++c) {
      const Index at = cache.offset(b, h, slot, c);
      const Number quotient = numbers[static_cast<std::size_t>(c)] / scale;
      cache.set_bits(at, stores_bits(p_)
                             ? rows.bits(rows.offset(b, h, row, c))
                             : encode_saturating(cache.format, static_cast<double>(quotient)));
    }
  }

  const Problem& p_;
  const CacheUpdate& update_;
  Reply reply_;
};

}  // namespace

template <class Number>
Reply appended(const Problem& problem, const CacheUpdate& update) {
  return Appending<Number>(problem, update).run();
}
template Reply appended<float>(const Problem&, const CacheUpdate&);
template Reply appended<double>(const Problem&, const CacheUpdate&);

}  // namespace attest
