// Exact dot: a sum of products of stored numbers, accurate far beyond any format.
#pragma once
#include <cmath>

namespace attest {

/// Sum of products in two doubles, kept by Knuth's error-free addition.
/// Domain: products of f32 or narrower numbers, which are exact in double; sums below 2^1000.
/// Error: after n terms at most n^2 2^-104 sum|products| (Ogita, Rump, Oishi 2005, Dot2, with exact
/// products); radius() says so with the sum it met.
class ExactDot {
 public:
  void add(double a, double b) {
    const double product = a * b;
    const double sum = high_ + product;
    const double rest = sum - high_;
    low_ += (high_ - (sum - rest)) + (product - rest);
    high_ = sum;
    absolute_ += std::abs(product);
    ++terms_;
  }
  double value() const { return high_ + low_; }
  double absolute() const { return absolute_; }
  double terms() const { return terms_; }
  double radius() const { return std::ldexp(terms_ * terms_ * absolute_, -104); }

 private:
  double high_ = 0, low_ = 0, absolute_ = 0, terms_ = 0;
};

}  // namespace attest
