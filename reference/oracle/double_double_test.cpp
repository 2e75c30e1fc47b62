// Pairs of doubles against MPFR at 300 bits: every operation is within kPairUnit, exp within
// kPairExpError.
#include "reference/oracle/double_double.hpp"

#include <gtest/gtest.h>
#include <mpfr.h>

#include <cstdio>
#include <random>

namespace attest::oracle {
namespace {

class Big {
 public:
  explicit Big(const Pair& pair) : Big() {
    mpfr_set_d(value_, pair.high[0], MPFR_RNDN);
    mpfr_add_d(value_, value_, pair.low[0], MPFR_RNDN);
  }
  Big() { mpfr_init2(value_, 300); }
  ~Big() { mpfr_clear(value_); }
  Big(const Big&) = delete;
  Big& operator=(const Big&) = delete;
  mpfr_t& number() { return value_; }

  /// |got - this| / |this|
  double error_of(const Pair& got) {
    Big difference(got);
    mpfr_sub(difference.value_, difference.value_, value_, MPFR_RNDN);
    if (mpfr_zero_p(difference.value_)) return 0;
    mpfr_div(difference.value_, difference.value_, value_, MPFR_RNDN);
    return std::fabs(mpfr_get_d(difference.value_, MPFR_RNDN));
  }

 private:
  mpfr_t value_;
};

struct Draw {
  std::mt19937_64 random{7};
  double number() { return static_cast<double>(random() >> 11) * 0x1p-53; }
  /// Both signs, over 2^60, with a low part that may be anything.
  Pair pair() {
    const double high = std::ldexp(number() - 0.5, static_cast<int>(random() % 60) - 30);
    const double low = high * 0x1p-53 * (number() - 0.5) * (random() % 4 == 0 ? 1e-9 : 1.0);
    return ordered_sum(lanes_of(high), lanes_of(low));
  }
};

TEST(Pairs, EveryOperationIsWithinOneUnit) {
  Draw draw;
  double sum = 0, mixed_sum = 0, product = 0, mixed_product = 0, quotient = 0;
  Big exact;
  for (int i = 0; i < 300'000; ++i) {
    const Pair x = draw.pair();
    Pair y = draw.pair();
    if (i % 3 == 0) y = -x * lanes_of(1 + draw.number() * 0x1p-30);  // cancels
    Big a(x), b(y);
    mpfr_add(exact.number(), a.number(), b.number(), MPFR_RNDN);
    if (!mpfr_zero_p(exact.number())) sum = std::max(sum, exact.error_of(x + y));
    mpfr_mul(exact.number(), a.number(), b.number(), MPFR_RNDN);
    product = std::max(product, exact.error_of(x * y));
    mpfr_div(exact.number(), a.number(), b.number(), MPFR_RNDN);
    quotient = std::max(quotient, exact.error_of(x / y));
    mpfr_mul_d(exact.number(), a.number(), y.high[0], MPFR_RNDN);
    mixed_product = std::max(mixed_product, exact.error_of(x * y.high));
    mpfr_add_d(exact.number(), a.number(), y.high[0], MPFR_RNDN);
    if (!mpfr_zero_p(exact.number())) mixed_sum = std::max(mixed_sum, exact.error_of(x + y.high));
    mpfr_mul_d(exact.number(), Big(pair_of(x.high[0])).number(), y.high[0], MPFR_RNDN);
    ASSERT_EQ(exact.error_of(two_product(x.high, y.high)), 0);
  }
  constexpr double kSquare = kUnit * kUnit;
  std::printf("largest errors in u^2: x + y %.2f, x + d %.2f, x y %.2f, x d %.2f, x / y %.2f\n",
              sum / kSquare, mixed_sum / kSquare, product / kSquare, mixed_product / kSquare,
              quotient / kSquare);
  for (double error : {sum, mixed_sum, product, mixed_product, quotient}) {
    EXPECT_GT(error, 0);
    EXPECT_LE(error, kPairUnit);
  }
}

TEST(Pairs, ExpIsWithinItsProvenError) {
  Draw draw;
  double largest = 0;
  Big exact;
  const auto check = [&](const Pair& x) {
    Big argument(-x);
    mpfr_exp(exact.number(), argument.number(), MPFR_RNDN);
    const double error = exact.error_of(exp_minus(x));
    ASSERT_LE(error, kPairExpError) << x.high[0];
    largest = std::max(largest, error);
  };
  for (int i = 0; i < 400'000; ++i) {
    const double high = (kPairVanish - 1) * draw.number() * (i % 2 == 0 ? 1 : 1e-3);
    check(ordered_sum(lanes_of(high), lanes_of(high * 0x1p-53 * (draw.number() - 0.5))));
  }
  for (int half = 1; 0.5 * half * std::log(2.0) < kPairVanish - 1; ++half) {
    double below = 0.5 * half * std::log(2.0), above = below;
    for (int step = 0; step < 40; ++step) {
      check(pair_of(below));
      check(pair_of(above));
      below = std::nextafter(below, 0.0);
      above = std::nextafter(above, HUGE_VAL);
    }
  }
  check(pair_of(kPairVanish));
  std::printf("exp: error at most %.1f u^2 of proven %.0f u^2\n", largest / (kUnit * kUnit),
              kPairExpError / (kUnit * kUnit));
  EXPECT_EQ(exp_minus(pair_of(0)).high[0], 1.0);
  EXPECT_EQ(exp_minus(pair_of(0)).low[0], 0.0);
}

}  // namespace
}  // namespace attest::oracle
