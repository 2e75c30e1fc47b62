// Boost.Math under our names, so that nobody else waits for its headers.
#include "reference/statistics/tails.hpp"

#include <boost/math/distributions/beta.hpp>
#include <boost/math/distributions/binomial.hpp>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>

namespace attest::statistics {

using boost::math::complement;

double normal_tail(double z) {
  return boost::math::cdf(complement(boost::math::normal(), z));
}

double normal_limit(double p) {
  return boost::math::quantile(complement(boost::math::normal(), p));
}

double student_tail(double t, double degrees) {
  return boost::math::cdf(complement(boost::math::students_t(degrees), t));
}

double student_limit(double p, double degrees) {
  return boost::math::quantile(complement(boost::math::students_t(degrees), p));
}

double coin_tail(int heads, int tosses) {
  if (heads <= 0) return 1;
  return boost::math::cdf(complement(boost::math::binomial(tosses, 0.5), heads - 1));
}

int binomial_critical_value(double p, int tosses) {
  int none = 0, enough = tosses + 1;  // the tail falls as heads rise
  while (enough - none > 1) {
    const int heads = none + (enough - none) / 2;
    (coin_tail(heads, tosses) <= p ? enough : none) = heads;
  }
  return enough;
}

// P(heads or more) = I_q(heads, tosses - heads + 1), the distribution of a beta variable at q.
double share_for(int heads, int tosses, double power) {
  return boost::math::quantile(boost::math::beta_distribution<>(heads, tosses - heads + 1), power);
}

}  // namespace attest::statistics
