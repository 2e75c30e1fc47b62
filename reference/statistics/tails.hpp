// How likely a statistic is to go so far by chance, and how far it goes by chance so likely.
#pragma once

namespace attest::statistics {

/// P(x > z) of a normal x. Error: that of Boost.Math, a few ulp, also far out.
double normal_tail(double z);
/// The z with that tail. Domain: 0 < p < 1.
double normal_limit(double p);

/// P(x > t) of Student's t. Domain: degrees > 0, not necessarily whole.
double student_tail(double t, double degrees);
double student_limit(double p, double degrees);

/// P(x >= heads) of as many tosses of a fair coin. Domain: 0 <= heads <= tosses.
double coin_tail(int heads, int tosses);
/// The least number of heads with that tail or less; tosses + 1: there is none. Domain: 0 < p < 1.
int binomial_critical_value(double p, int tosses);
/// How likely a head must be for `heads` or more to come up with probability `power`. Domain:
/// 0 < heads <= tosses, 0 < power < 1.
double share_for(int heads, int tosses, double power);

}  // namespace attest::statistics
