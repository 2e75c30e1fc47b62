// Boost.Math under our names, so that nobody else waits for its headers.
#include "reference/statistics/tails.hpp"

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

}  // namespace attest::statistics
