// Right kernels, each on rows made for it, so that one term of a bound carries much of the error:
// most are refused when that term is left out (README, "To add a term"). For one_term_test alone.
#pragma once
#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "reference/bound/testing/simulated_kernel.hpp"
#include "reference/random_values.hpp"

namespace attest {

struct Drawn {
  Problem problem;
  Values values;
};

class Draws {
 public:
  explicit Draws(std::uint64_t seed) : random_(seed) {}
  /// From 0 to 1.
  double number() { return static_cast<double>(random_() >> 11) * 0x1p-53; }
  double between(double low, double high) { return low + (high - low) * number(); }

 private:
  std::mt19937_64 random_;
};

/// One query of one 1, so that keys are logits.
inline Drawn row_of(const std::vector<double>& logits, const std::vector<double>& v,
                    Problem p = {}) {
  p.seqlen_kv = static_cast<Index>(logits.size());
  Drawn drawn{p, zero_values(p)};
  drawn.values.q.set(0, 1);
  for (Index j = 0; j < p.seqlen_kv; ++j) {
    const auto at = static_cast<std::size_t>(j);
    drawn.values.k.set(j, logits[at]);
    drawn.values.v.set(j, v[at]);
  }
  return drawn;
}

inline Drawn with_sink(Drawn drawn, double sink) {
  drawn.problem.sinks = true;
  drawn.values.sinks = Tensor(Format::f32, {1, 1, 1, 1});
  drawn.values.sinks->set(0, sink);
  return drawn;
}

struct OneTerm {
  std::string name;
  Recipe recipe;
  Drawn (*draw)(Draws&);
  int rounds = 30;
};

using OneTerms = std::vector<OneTerm>;

/// With P in a format, and the row sum of numbers of it or not.
inline Recipe with(Recipe recipe, Format p_format, bool row_sum_of_rounded_p = false) {
  recipe.p_format = p_format;
  recipe.row_sum_of_rounded_p = row_sum_of_rounded_p;
  return recipe;
}

/// A light first key against a heavy last one: o is near zero, and what the weight of either may be
/// off by moves it, while what both share does not.
inline Drawn seesaw(Draws& draws, Index keys) {
  std::vector<double> logits, v(static_cast<std::size_t>(keys));
  const double low = draws.between(-8, -5);
  for (Index j = 0; j + 1 < keys; ++j) logits.push_back(low + 0.1 * static_cast<double>(j));
  logits.push_back(0);
  v.front() = std::exp(-low);
  v.back() = -1;
  return row_of(logits, v);
}

/// Keys of rising logits, the last of which alone has a value: what is off in the others' weights
/// is seen in the row sum only.
inline Drawn last_of(Draws& draws, Index keys) {
  std::vector<double> logits, v(static_cast<std::size_t>(keys));
  for (Index j = keys; j-- > 0;) logits.push_back(-0.01 * static_cast<double>(j) * draws.number());
  std::sort(logits.begin(), logits.end());
  v.back() = 1 + draws.number();
  return row_of(logits, v);
}

void add_terms_of_weights(OneTerms& all);  // exponentials, flips, logarithms, and where states meet
void add_terms_of_sums(OneTerms& all);     // additions, products and divisions
void add_terms_of_logits(OneTerms& all);   // inner products
void add_terms_of_forms(OneTerms& all);    // what only some kernels do

}  // namespace attest
