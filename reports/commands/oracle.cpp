// oracle: the truth for anybody's tensors: with a proven radius per element, or with the number of
// digits that two computations, at 50 and at 100 digits, agree on.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <utility>

#include "properties/by_heads.hpp"
#include "properties/fills.hpp"
#include "reference/oracle/certified.hpp"
#include "reference/text.hpp"
#include "reports/commands/commands.hpp"
#include "reports/commands/meant_file.hpp"
#include "reports/formats.hpp"
#include "reports/rendering.hpp"
#include "reports/safetensors.hpp"
#include "reports/say.hpp"
#include "reports/stage.hpp"

namespace attest {
namespace {

/// A number and its tail are 106 bits, which is 31 decimal digits and a little.
constexpr int kDigitsMost = 31;

/// The largest number of those that are finite.
double largest_of(const std::vector<double>& numbers) {
  double largest = 0;
  for (double number : numbers) {
    if (std::isfinite(number)) largest = std::max(largest, number);
  }
  return largest;
}

/// How far it is, on stderr.
class HeadsDone {
 public:
  explicit HeadsDone(const Problem& problem)
      : stage_(stderr, "the truth", {&done, problem.batch * problem.num_heads_q, "heads"}) {}
  std::atomic<Index> done = 0;

 private:
  Stage stage_;
};

Certified certified_shown(const TensorsFile& file) {
  HeadsDone heads(file.problem);
  return certified_by_heads(file.problem, file.values, &heads.done);
}

ExactTruth exact_shown(const TensorsFile& file, int digits) {
  HeadsDone heads(file.problem);
  return exact_by_heads(file.problem, file.values, digits == 50 ? Digits::fifty : Digits::hundred,
                        &heads.done);
}

/// What a file does not say of its axes, and what becomes of them.
void print_axes(const TensorsFile& file) {
  if (file.rows_before_heads) {
    say("axes (batch, token, head, width), as the tensors had; lse (batch, head, token)\n");
  } else if (!file.axes_said) {
    const Problem& p = file.problem;
    say("axes read as (batch, head, token, width): {} of {} keys{}\n",
        p.num_heads_kv == 1 ? "1 KV head" : fmt::format("{} KV heads", p.num_heads_kv), p.seqlen_kv,
        p.num_heads_kv > p.seqlen_kv
            ? "; are these not tokens before heads? Then say --problem layout=bthd"
            : "");
  }
}

Truth certify(const TensorsFile& file, const std::string& out) {
  Certified certified = certified_shown(file);
  write_truth_file(out, file, certified);
  say("O ({} numbers) and LSE ({}) written to {} with what they follow from; the truth is within "
      "o_radius, at most {}, and "
      "lse_radius, at most {}; rows computed in: {}\n",
      certified.truth.o.size(), certified.truth.lse.size(), out,
      short_number(largest_of(certified.o_radius)), short_number(largest_of(certified.lse_radius)),
      tiers_text(certified));
  return std::move(certified.truth);
}

Truth by_digits(const TensorsFile& file, const std::string& out, int digits) {
  ExactTruth exact = exact_shown(file, digits);
  Truth& truth = exact.truth;
  const int agreeing = std::min(kDigitsMost, exact.digits);
  write_truth_file(out, file, truth, agreeing);
  say("O ({} numbers) and LSE ({}) written to {}: rounded once to f64 from {} digits; with "
      "their tails {} digits are certified\n",
      truth.o.size(), truth.lse.size(), out, digits, agreeing);
  return std::move(truth);
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
  say("the file's own {} is at most {} away from it\n", name, short_number(largest));
}

}  // namespace

int oracle(const OracleOptions& options) {
  if (options.digits != 0 && options.digits != 50 && options.digits != 100) {
    throw Error(fmt::format("--digits: {} is neither 50 nor 100", options.digits));
  }
  std::error_code failed;
  const std::filesystem::path path = options.what;
  TensorsFile file;
  if (is_meant_as_file(options.what)) {
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
  require_writable_file(options.out);
  say("{}: {}\n", version_text(), print(file.problem));
  print_axes(file);
  std::fflush(stdout);
  const Truth truth = options.digits == 0 ? certify(file, options.out)
                                          : by_digits(file, options.out, options.digits);
  if (file.o) print_distance("o", *file.o, truth.o);
  if (file.lse) print_distance("lse", *file.lse, truth.lse);
  return 0;
}

}  // namespace attest
