// The proven errors of exp, tanh and log against MPFR at 120 bits, over more than a million
// arguments: everywhere, near 0, and on both sides of every border between two powers of two.
#include "reference/oracle/exponential.hpp"

#include <gtest/gtest.h>
#include <mpfr.h>

#include <cstdio>
#include <limits>
#include <random>
#include <vector>

namespace attest::oracle {
namespace {

using Function = int (*)(mpfr_t, const mpfr_t, mpfr_rnd_t);

/// MPFR's value of a function, of which a double's distance can be asked.
class Precise {
 public:
  Precise() { mpfr_inits2(120, value_, difference_, nullptr); }
  ~Precise() { mpfr_clears(value_, difference_, nullptr); }
  Precise(const Precise&) = delete;
  Precise& operator=(const Precise&) = delete;

  double relative_error(Function function, double x, double got) {
    evaluate(function, x);
    mpfr_sub_d(difference_, value_, got, MPFR_RNDN);
    mpfr_div(difference_, difference_, value_, MPFR_RNDN);
    return std::fabs(mpfr_get_d(difference_, MPFR_RNDN));
  }
  double absolute_error(Function function, double x, double got) {
    evaluate(function, x);
    mpfr_sub_d(difference_, value_, got, MPFR_RNDN);
    return std::fabs(mpfr_get_d(difference_, MPFR_RNDN));
  }

 private:
  void evaluate(Function function, double x) {
    mpfr_set_d(value_, x, MPFR_RNDN);
    function(value_, value_, MPFR_RNDN);
  }
  mpfr_t value_, difference_;
};

std::vector<double> arguments(double most) {
  std::mt19937_64 random(3);
  const auto number = [&] { return static_cast<double>(random() >> 11) * 0x1p-53; };
  std::vector<double> all = {0, most, 0x1p-1074, 0x1p-1022, 0x1p-54, 0x1p-53, 0x1p-52};
  for (int i = 0; i < 600'000; ++i) all.push_back(most * number());
  for (int i = 0; i < 200'000; ++i) all.push_back(std::exp(-700 * number()));
  for (int i = 0; i < 200'000; ++i) all.push_back(number());
  for (int half = 1; 0.5 * half * std::log(2.0) < most; ++half) {
    double below = 0.5 * half * std::log(2.0), above = below;
    for (int step = 0; step < 50; ++step) {
      all.push_back(below);
      all.push_back(above);
      below = std::nextafter(below, 0.0);
      above = std::nextafter(above, HUGE_VAL);
    }
  }
  return all;
}

TEST(Exponential, IsWithinItsProvenError) {
  Precise precise;
  double largest = 0;
  const std::vector<double> all = arguments(kVanish);
  ASSERT_GT(all.size(), 1'000'000U);
  for (double x : all) {
    if (x > kVanish) continue;
    const double got = exp_minus(x), error = precise.relative_error(mpfr_exp, -x, got);
    ASSERT_LE(error, kExpError) << x;
    ASSERT_LE(got, 1.0);
    largest = std::max(largest, error);
  }
  std::printf("exp: error at most %.3f u of proven %.0f u, %zu arguments\n", largest / kUnit,
              kExpError / kUnit, all.size());
  EXPECT_EQ(exp_minus(0.0), 1.0);
}

TEST(Exponential, TwoAtATimeAreTheSameAsOne) {
  const std::vector<double> all = arguments(kVanish);
  for (std::size_t i = 1; i < all.size(); i += 97) {
    if (all[i] > kVanish || all[i - 1] > kVanish) continue;
    const Lanes both = exp_minus(Lanes{all[i - 1], all[i]});
    ASSERT_EQ(both[0], exp_minus(all[i - 1]));
    ASSERT_EQ(both[1], exp_minus(all[i]));
  }
}

TEST(Tanh, IsWithinItsProvenError) {
  Precise precise;
  double largest = 0;
  for (double x : arguments(20)) {
    const Lanes got = tanh_of(Lanes{x, -x});
    const double error = precise.absolute_error(mpfr_tanh, x, got[0]);
    ASSERT_LE(error, kTanhError) << x;
    ASSERT_EQ(got[1], -got[0]);
    largest = std::max(largest, error);
  }
  std::printf("tanh: error at most %.3f u of proven %.0f u\n", largest / kUnit, kTanhError / kUnit);
  for (double far : {400.0, 1e300, HUGE_VAL}) EXPECT_EQ(tanh_of(lanes_of(far))[0], 1.0);
}

TEST(Log, SaysHowFarOffItIs) {
  Precise precise;
  double largest = 0;
  for (double x : arguments(50)) {
    for (double argument : {1 + x, std::ldexp(1 + x, 900)}) {
      const Logarithm log = log_of(argument);
      const double error = precise.absolute_error(mpfr_log, argument, log.value);
      ASSERT_LE(error, log.error) << argument;
      // The guess is a good one: within an ulp, and e to the power of an ulp is that much off.
      ASSERT_LE(log.error, 2 * kUnit * log.value + 10 * kUnit) << argument;
      largest = std::max(largest, error / log.error);
    }
  }
  std::printf("log: error at most %.3f of what it says\n", largest);
}

}  // namespace
}  // namespace attest::oracle
