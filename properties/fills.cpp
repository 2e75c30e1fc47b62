// The named fills as one table: for each of q, k and v a function from coordinates to a number.
// Only +, -, *, /, sqrt and integers are used: IEEE rounds each of them correctly, so the values
// are the same bits on every machine. Optional arguments are filled in fills_arguments.cpp.
#include "properties/fills.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "properties/cache_rows.hpp"
#include "properties/counter_random.hpp"
#include "properties/fills_arguments.hpp"
#include "reference/formats.hpp"
#include "reference/text.hpp"

namespace attest {
namespace {

/// Where a number stands, and what the fills may know of the case.
struct Place {
  const Problem* problem;
  std::uint64_t seed;
  double unit_q,
      unit_k;         // head_dim * scale * unit_q * unit_k == 1: a logit of 1 spread over the row
  double largest_v;   // a safe fraction of what v and o can hold
  double smallest_v;  // the least subnormal of v's format
  std::uint32_t subnormals;  // how many multiples of it are still subnormal
  Stream stream;
  Index b, h, row, c;

  std::array<std::uint32_t, 4> bits() const { return random_bits(seed, stream, b, h, row, c); }
  /// One number for the whole row, shared by its columns.
  std::uint32_t row_bits() const { return random_bits(seed, stream, b, h, row, -1)[0]; }
  double bell() const { return attest::bell(bits()); }
  /// Absolute position of query `row` among the keys.
  Index position() const { return row + problem->seqlen_kv - problem->seqlen_q; }
};

using Element = double (*)(const Place&);

double normal(const Place& p) {
  return p.bell();
}
double zero(const Place&) {
  return 0;
}
double plus_or_minus_one(const Place& p) {
  return (p.bits()[0] & 1U) != 0 ? 1 : -1;
}
double magnitude(const Place& p) {
  return std::abs(p.bell()) + 0.125;
}
double small_integer(const Place& p) {
  return static_cast<double>(p.bits()[0] % 7U) - 3;
}

/// q for the fills that prescribe logits: every column carries the same share, and the row's
/// neighbours differ a little.
double logit_q(const Place& p) {
  return p.unit_q * (1 + p.bell() / 32);
}
/// The k that makes the logit `target`, with about unit noise over the columns.
double logit_k(const Place& p, double target) {
  return p.unit_k * (target + p.bell() * std::sqrt(static_cast<double>(p.problem->head_dim)));
}

/// Edges of the tiles kernels use (16, 32, 64, 128), and the rows before them.
bool at_tile_edge(Index j) {
  for (const Index edge : {0, 16, 32, 64, 128}) {
    if (j == edge || j == edge - 1) return true;
  }
  return false;
}
double dominant_k(const Place& p) {
  // Every edge stands out, each by another step: whatever the shape, one of them dominates.
  const double step = 16.0 + 16.0 * (p.row_bits() % 8U);
  return logit_k(p, at_tile_edge(p.row) ? step : 0.0);
}
double rising_k(const Place& p) {
  return logit_k(p, 0.75 * static_cast<double>(p.row));
}
double falling_k(const Place& p) {
  return logit_k(p, -200.0 * static_cast<double>(p.row / 16));
}
double low_k(const Place& p) {
  return logit_k(p, -120);
}
double high_k(const Place& p) {
  return logit_k(p, 100);
}
double very_low_k(const Place& p) {
  return logit_k(p, -9e4);
}

/// q.k beyond 65504, f16's largest finite number, for every head_dim.
double overflowing(const Place& p) {
  return std::sqrt(1e5 / static_cast<double>(p.problem->head_dim)) * (1 + p.bell() / 64);
}

double large_v(const Place& p) {
  return p.largest_v * (0.75 + 0.25 * (p.bits()[1] % 1024U) / 1024.0) * plus_or_minus_one(p);
}
double subnormal_v(const Place& p) {
  return p.smallest_v * (1.0 + p.bits()[1] % p.subnormals) * plus_or_minus_one(p);
}
double integer_v(const Place& p) {
  return static_cast<double>(p.bits()[0] % 17U) - 8;
}

Place with_row(Place p, Index row) {
  p.row = row;
  return p;
}
Place with_column(Place p, Index c) {
  p.c = c;
  return p;
}

double tied_k(const Place& p) {
  return normal(with_row(p, p.row % 2));
}
double duplicated_k(const Place& p) {
  return normal(with_row(p, p.row / 3));
}

/// Columns come in pairs that cancel in q.k up to a thousandth of their size.
double pairwise_q(const Place& p) {
  return 30 * normal(with_column(p, p.c / 2));
}
double cancelling_k(const Place& p) {
  const double pair = 30 * normal(with_column(p, p.c / 2));
  return p.c % 2 == 0 ? pair : -pair * (1 - 1.0 / 1024) + p.bell() / 1024;
}
double cancelling_v(const Place& p) {
  return (p.row % 2 == 0 ? 96.0 : -96.0) + p.bell();
}

double sink_k(const Place& p) {
  return logit_k(p, p.row == 0 ? 12 : 0);
}
double sink_v(const Place& p) {
  return p.row == 0 ? p.bell() / 64 : p.bell();
}

/// A row of +-1 that stands for a position or a token; q.k of equal codes is head_dim.
double code(const Place& p, Index token) {
  const auto bits = random_bits(p.seed, Stream::other, p.b, 0, token, p.c);
  return (bits[0] & 1U) != 0 ? 1 : -1;
}
double previous_q(const Place& p) {
  return 12 * p.unit_q * code(p, p.position() - 1);
}
double position_k(const Place& p) {
  return p.unit_k * code(p, p.row);
}
constexpr Index kPeriod = 8;  // tokens after which the induction text repeats
double induction_q(const Place& p) {
  return 12 * p.unit_q * code(p, p.position() % kPeriod);
}
double induction_k(const Place& p) {
  return p.unit_k * code(p, (p.row + kPeriod - 1) % kPeriod);
}
double needle_k(const Place& p) {
  return logit_k(p, p.row_bits() % 16U == 0 ? 10 : -10);
}

double ramp_v(const Place& p) {
  return static_cast<double>(p.row + 1 + 10 * p.h + 100 * p.b);
}
double constant_v(const Place& p) {
  return normal(with_row(p, 0));
}
double scaled_normal(const Place& p) {
  return 3 * p.bell();
}
double tenth_normal(const Place& p) {
  return p.bell() / 8;
}
/// All keys of every second row: what is subtracted from all of them changes no weight.
double low_bias(const Place& p) {
  return p.bell() - (p.row % 2 == 0 ? 1e5 : 0);
}

struct Recipe {
  Fill fill;
  Element q, k, v;
  Element bias = nullptr;  // where the Problem has one; null: as fill_arguments says
};

// clang-format off
constexpr Recipe kRecipes[] = {
  {{"normal", "bell-shaped, unit variance: the ordinary case"}, normal, normal, normal},
  {{"peaky", "3 x normal: a few keys carry the row, so a wrong score cannot hide"}, scaled_normal, scaled_normal, normal},
  {{"small", "normal / 8: nearly flat weights, where one dropped key is faint but real"}, tenth_normal, tenth_normal, normal},
  {{"one_signed", "V > 0: errors of sums and of the row sum cannot cancel"}, normal, normal, magnitude},
  {{"constant", "equal V rows: the output must be that row, whatever the weights"}, normal, normal, constant_v},
  {{"zero_query", "q = 0: uniform weights; a padded key shows in the row sum"}, zero, normal, normal},
  {{"ramp", "V = key + 10 head + 100 batch: every row of V can be told from every other"}, normal, normal, ramp_v},
  {{"integers", "small whole numbers: sums are exact, ties are common"}, small_integer, small_integer, integer_v},
  {{"signs", "q, k = +-1: unit variance exactly, in every format"}, plus_or_minus_one, plus_or_minus_one, normal},
  {{"dominant_key", "a key at a tile edge outweighs all others: a lost edge is lost output"}, logit_q, dominant_k, normal},
  {{"rising_maxima", "the running maximum grows at every key: rescaling is always needed"}, logit_q, rising_k, normal},
  {{"falling_maxima", "the first tile lies 200 above the next: a maximum that is not kept shows"}, logit_q, falling_k, normal},
  {{"logits_low", "all scores near -120: a maximum that starts at 0 underflows"}, logit_q, low_k, normal},
  {{"logits_high", "all scores near +100: exponentials without a maximum overflow"}, logit_q, high_k, normal},
  {{"logits_very_low", "scores below -5e4: a finite stand-in for -inf is mistaken for a maximum"}, logit_q, very_low_k, normal},
  {{"overflow_f16", "q.k beyond 65504 before scaling: a product kept in f16 overflows"}, overflowing, overflowing, normal},
  {{"large_values", "V near what the format can hold: an accumulator in a narrow format overflows"}, normal, normal, large_v},
  {{"subnormal", "V below its format's normal range: a conversion that flushes it shows"}, normal, normal, subnormal_v},
  {{"ill_conditioned", "q.k and PV cancel: the bound must follow absolute sums"}, pairwise_q, cancelling_k, cancelling_v},
  {{"ties", "two kinds of keys only: equal scores with different values"}, normal, tied_k, normal},
  {{"duplicate_keys", "each key three times with different values: an index slip shows in V alone"}, normal, duplicated_k, normal},
  {{"sink_token", "the first key draws most of the weight, as in trained models"}, logit_q, sink_k, sink_v},
  {{"previous_token", "query i looks at key i - 1: an alignment off by one shows"}, previous_q, position_k, normal},
  {{"induction", "query i looks behind earlier copies of itself: many far keys matter"}, induction_q, induction_k, normal},
  {{"needle", "one key in sixteen matters: skipping a tile loses it"}, logit_q, needle_k, normal},
  {{"low_bias", "a bias near -1e5 on all keys of every second row: far from -inf, it hides none of them"}, normal, normal, normal, low_bias},
};
// clang-format on

const Recipe& recipe_named(std::string_view name) {
  std::vector<std::string_view> known;
  for (const Recipe& recipe : kRecipes) {
    if (recipe.fill.name == name) return recipe;
    known.push_back(recipe.fill.name);
  }
  std::string message = "fill '" + std::string(name) + "' is unknown";
  const std::string near = nearest(name, known);
  message += near.empty() ? "; `attest list fills` names them" : "; did you mean '" + near + "'?";
  throw Error(message);
}

Tensor filled(Place place, Format format, Stream stream, Extent4 extent, Element element) {
  Tensor tensor(format, extent);
  const double largest = facts(tensor.format).max_finite;
  place.stream = stream;
  Index flat = 0;
  for (place.b = 0; place.b < extent[0]; ++place.b) {
    for (place.h = 0; place.h < extent[1]; ++place.h) {
      for (place.row = 0; place.row < extent[2]; ++place.row) {
        for (place.c = 0; place.c < extent[3]; ++place.c) {
          tensor.set(flat++, std::clamp(element(place), -largest, largest));
        }
      }
    }
  }
  return tensor;
}

/// Shares a logit of 1 between q and k: both of about the same size, q a power of two.
Place place_for(const Problem& problem, std::uint64_t seed) {
  Place place{};
  place.problem = &problem;
  place.seed = seed;
  const double slope =
      static_cast<double>(problem.softmax_scale) * static_cast<double>(problem.head_dim);
  int exponent = 0;
  if (slope != 0) std::frexp(slope, &exponent);
  place.unit_q = std::ldexp(1.0, -exponent / 2);
  place.unit_k = slope != 0 ? 1 / (slope * place.unit_q) : 1.0;
  // A sum of up to 1024 weighted values must stay finite in f32 before it is divided, and o must
  // not round to infinity: hence the 1024 for formats that reach as far as f32, and the 0.9.
  const double reach = std::min(facts(problem.input).max_finite, facts(problem.output).max_finite);
  place.largest_v = 0.9 * std::min(reach, facts(Format::f32).max_finite / 1024);
  const Format stored = problem.scales == Scales::none ? cache_format(problem) : problem.input;
  place.smallest_v = ulp(stored, 0);
  place.subnormals = static_cast<std::uint32_t>(smallest_normal(stored) / place.smallest_v) - 1;
  return place;
}

}  // namespace

std::span<const Fill> fills() {
  static const std::vector<Fill> list = [] {
    std::vector<Fill> all;
    for (const Recipe& recipe : kRecipes) all.push_back(recipe.fill);
    return all;
  }();
  return list;
}

Values make_values(const Case& test_case) {
  const Problem& p = test_case.problem;
  const Recipe& recipe = recipe_named(test_case.fill);
  if (const std::string why = invalidity(p); !why.empty()) {
    throw Error("impossible problem: " + why + " (" + print(p) + ")");
  }
  const Place place = place_for(p, test_case.seed);
  Values values;
  const Extent4 q{p.batch, p.num_heads_q, p.seqlen_q, p.head_dim};
  const Extent4 k{p.batch, p.num_heads_kv, p.seqlen_kv, p.head_dim},
      v{p.batch, p.num_heads_kv, p.seqlen_kv, p.head_dim_v};
  values.q = filled(place, p.input, Stream::q, q, recipe.q);
  if (p.scales == Scales::none) {
    values.k = filled(place, cache_format(p), Stream::k, k, recipe.k);
    values.v = filled(place, cache_format(p), Stream::v, v, recipe.v);
  } else {  // drawn in f32, then stored
    CacheRows keys = stored_rows(p, filled(place, Format::f32, Stream::k, k, recipe.k));
    CacheRows rows = stored_rows(p, filled(place, Format::f32, Stream::v, v, recipe.v));
    values.k = std::move(keys.numbers);
    values.v = std::move(rows.numbers);
    values.k_scales = std::move(keys.scales);
    values.v_scales = std::move(rows.scales);
  }
  fill_arguments(p, test_case.seed, values);
  if (p.bias && recipe.bias != nullptr) {
    values.bias = filled(place, Format::f32, Stream::bias, values.bias->extent, recipe.bias);
  }
  return values;
}

}  // namespace attest
