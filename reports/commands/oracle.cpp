// oracle: the truth for anybody's tensors, with the number of digits that two computations, at 50
// and at 100 digits, agree on.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "properties/fills.hpp"
#include "reference/oracle/exact.hpp"
#include "reference/text.hpp"
#include "reports/commands/commands.hpp"
#include "reports/formats.hpp"
#include "reports/rendering.hpp"

namespace attest {
namespace {

/// A number and its tail are 106 bits, which is 31 decimal digits and a little.
constexpr int kDigitsMost = 31;

/// Decimal digits on which head + tail of both agree. Special: NaN agrees with NaN, an infinity
/// with itself, and anything else with itself alone.
int agreeing(double a, double a_tail, double b, double b_tail) {
  if (!std::isfinite(a) || !std::isfinite(b)) {
    return a == b || (std::isnan(a) && std::isnan(b)) ? kDigitsMost : 0;
  }
  const double difference = std::abs((a - b) + (a_tail - b_tail));
  if (difference == 0) return kDigitsMost;
  const double digits = -std::log10(difference / std::max(std::abs(a), std::abs(b)));
  return std::clamp(static_cast<int>(digits), 0, kDigitsMost);
}

int agreeing(const Truth& a, const Truth& b) {
  int least = kDigitsMost;
  for (std::size_t i = 0; i < a.o.size(); ++i) {
    least = std::min(least, agreeing(a.o[i], a.o_tail[i], b.o[i], b.o_tail[i]));
  }
  for (std::size_t i = 0; i < a.lse.size(); ++i) {
    least = std::min(least, agreeing(a.lse[i], a.lse_tail[i], b.lse[i], b.lse_tail[i]));
  }
  return least;
}

/// Somebody's answer in the same file: how far is it from the truth?
void print_distance(std::string_view name, const std::vector<double>& given,
                    const std::vector<double>& truth) {
  double largest = 0;
  for (std::size_t i = 0; i < truth.size() && i < given.size(); ++i) {
    const bool same = given[i] == truth[i] || (std::isnan(given[i]) && std::isnan(truth[i]));
    const double distance = std::abs(given[i] - truth[i]);
    if (!same && !(distance <= largest)) largest = distance;
  }
  fmt::print("the file's own {} is at most {} away from it\n", name, short_number(largest));
}

}  // namespace

int oracle(const OracleOptions& options) {
  if (options.digits != 50 && options.digits != 100) {
    throw Error(fmt::format("--digits: {} is neither 50 nor 100", options.digits));
  }
  std::error_code failed;
  const std::filesystem::path path = options.what;
  TensorsFile file;
  if (std::filesystem::exists(path, failed) || path.extension() == ".safetensors") {
    file = read_tensors_file(path, options.problem);
  } else {
    const Case test_case = parse_case(options.what);
    file.problem = test_case.problem;
    file.values = make_values(test_case);
  }
  if (std::filesystem::equivalent(path, options.out, failed)) {
    throw Error(fmt::format("{}: the truth would replace the tensors it is for; give another -o",
                            options.out));
  }
  const Truth fifty = exact_attention(file.problem, file.values, Digits::fifty);
  const Truth hundred = exact_attention(file.problem, file.values, Digits::hundred);
  const Truth& truth = options.digits == 50 ? fifty : hundred;
  const int digits = agreeing(fifty, hundred);
  write_truth_file(options.out, file.problem, truth, digits);
  fmt::print("{}: {}\n", version_text(), print(file.problem));
  fmt::print(
      "O ({} numbers) and LSE ({}) written to {}: rounded once to f64 from {} digits; with "
      "their tails {} digits are certified\n",
      truth.o.size(), truth.lse.size(), options.out, options.digits, digits);
  if (file.o) print_distance("o", *file.o, truth.o);
  if (file.lse) print_distance("lse", *file.lse, truth.lse);
  return 0;
}

}  // namespace attest
