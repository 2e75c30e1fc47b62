// B1, the order-free bound, evaluated in double for one row after another. The letters and steps
// (S1 ... S8) are those of bound/README.md; every constant is in constants.hpp.
#include "reference/bound/order_free.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "reference/bound/constants.hpp"
#include "reference/formats.hpp"
#include "reference/oracle/exact.hpp"

namespace attest {
namespace {

using namespace bound;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kLog2e = 0x1.71547652b82fep0;  // log2(e) to double

/// (1 + u)^n - 1: what n roundings can do to a number. Higham, Accuracy and Stability of Numerical
/// Algorithms, 2nd ed., lemma 3.1, without its simplification to n u / (1 - n u).
double roundings(double n) {
  return std::expm1(n * std::log1p(kU));
}

/// What happens to the terms of a sum of `products` products, none of which is further than `span`
/// places from another: roundings of f32 operations, or of steps of tensor cores. A step without a
/// product that counts changes nothing, so there are no more of them than products.
double sum_roundings(const PrecisionPath& path, Format operand, double products, double span) {
  if (path.tensor_step == 0) return products;
  const double unit = bytes_of(operand) == 1 ? kTensorStepRoundings8 : kTensorStepRoundings;
  return unit * std::min(products, std::ceil(span / static_cast<double>(path.tensor_step)) + 1);
}

/// The magnitude by which tensor cores align: subnormal operands count as the smallest normal one.
double aligned(Format format, double operand) {
  return operand == 0 ? 0 : std::max(std::fabs(operand), smallest_normal(format));
}

/// The relative error of the exponential as an error of its argument; 1 or more says nothing.
double as_exponent(double relative_error) {
  return relative_error < 1 ? -std::log1p(-relative_error) : kInfinity;
}

/// What a subject declares may be anything; less than `least` is not believed, NaN is no promise.
double declared(double error, double least) {
  return std::isnan(error) ? kInfinity : std::max(error, least);
}

/// Where infinite declarations meet zeros no number comes out, and no promise either.
double promise(double bound) {
  return std::isnan(bound) ? kInfinity : bound;
}

/// A head's rows as doubles, with the 1-norm of each row.
struct Rows {
  Index width = 0;
  std::vector<double> numbers, norm;
  const double* row(Index i) const { return numbers.data() + i * width; }
};

Rows rows_of(const Tensor& tensor, Index b, Index h, Index count) {
  Rows rows{tensor.extent[3], {}, {}};
  for (Index i = 0; i < count; ++i) {
    double norm = 0;
    for (Index c = 0; c < rows.width; ++c) {
      rows.numbers.push_back(tensor.at(b, h, i, c));
      norm += std::fabs(rows.numbers.back());
    }
    rows.norm.push_back(norm);
  }
  return rows;
}

struct Row {
  const Problem& problem;
  const Values& values;
  const PrecisionPath& path;
  Index b, h, i;
};

/// A visible key, or the sink.
struct Term {
  Index j;
  double logit;
  double logit_error;      // S1 to S3, absolute
  double exponent = 0;     // A: every error of ln(weight) that is not common to the row
  double weight = 0;       // relative to the reference, at most 1
  double share = 0;        // pi
  double theta_share = 0;  // pi Theta
};

struct Scores {
  std::vector<Term> keys;
  std::vector<Term> sink;       // one, or none
  std::vector<Index> readable;  // visible keys and those under a bias of -inf
  bool judged = true;           // no intermediate can overflow and nothing is NaN or infinite
};

/// S1 to S3: the logit of key j and how far off a kernel may compute it.
Term score(const Row& row, Index j, const double* q, double q_norm, const Rows& k, bool& judged) {
  const Problem& p = row.problem;
  const bool tensor = row.path.tensor_step != 0;
  double x = 0, a = 0;
  for (Index c = 0; c < p.depth; ++c) {
    const double product = q[c] * k.row(j)[c];
    x += product;
    a += tensor ? aligned(p.input, q[c]) * aligned(p.input, k.row(j)[c]) : std::fabs(product);
  }
  const double k_norm = k.norm[static_cast<std::size_t>(j)];
  const double scale = std::fabs(static_cast<double>(p.scale)),
               depth = static_cast<double>(p.depth);
  const double products = depth - (p.input == Format::f32 || tensor ? 0 : 1);
  const double roundings_of_sum = sum_roundings(row.path, p.input, products, depth);  // S1
  const double flushed =
      kFlush * (scale * (q_norm + k_norm + 2 * depth) + 2 * k_norm + 2 * depth + 8);
  double error = scale * a * roundings(roundings_of_sum + kScaleRoundings) + flushed;  // S2
  double logit = p.scale * x;
  double magnitude = std::fabs(logit) + error;
  double largest = std::max({1.0, scale}) * (a + error) + q_norm * scale;

  if (p.softcap > 0) {  // S3
    const double capped = std::min(magnitude, p.softcap);
    const double relative =
        declared(row.path.tanh_error, kFaithful) + declared(row.path.division_error, 0);
    error += (relative + kSoftcapRoundings * kU) * (capped + error);
    logit = p.softcap * std::tanh(logit / p.softcap);
    magnitude = capped;
    if (p.softcap < kFlush || p.softcap > kOverflow) judged = false;
  }
  double terms = 0, own = 0;
  if (row.values.bias) {
    const double bias = row.values.bias->at(row.b, row.h, row.i, j);
    logit += bias;
    magnitude += std::fabs(bias);
    own += kTermRoundings * kU * std::fabs(bias);
    ++terms;
  }
  if (row.values.slopes) {
    const auto distance = std::fabs(static_cast<double>(row.i + diagonal(p, row.b) - j));
    const double alibi = row.values.slopes->at(row.h) * distance;
    logit -= alibi;
    magnitude += std::fabs(alibi);
    own += kAlibiRoundings * kU * std::fabs(alibi) + kFlush * distance;
    ++terms;
  }
  error += own + terms * (kU * magnitude + kFlush);
  largest = std::max(largest, magnitude + error);
  if (!(largest < kOverflow)) judged = false;  // also catches NaN
  return {j, logit, error};
}

Scores scores_of(const Row& row, const Rows& q, const Rows& k) {
  Scores scores;
  for (Index j = 0; j < key_length(row.problem, row.b); ++j) {
    if (!visible(row.problem, row.values, row.b, row.i, j)) continue;
    scores.readable.push_back(j);
    const bool hidden =
        row.values.bias && row.values.bias->at(row.b, row.h, row.i, j) == -kInfinity;
    if (hidden) {
      // A kernel may add -inf to whatever it computes: that is -inf only if it computes a number.
      const double norm = k.norm[static_cast<std::size_t>(j)];
      const double q_norm = q.norm[static_cast<std::size_t>(row.i)];
      const double scale = std::max(1.0, std::fabs(static_cast<double>(row.problem.scale)));
      if (!(norm * q_norm * scale < kOverflow)) scores.judged = false;
      continue;
    }
    scores.keys.push_back(
        score(row, j, q.row(row.i), q.norm[static_cast<std::size_t>(row.i)], k, scores.judged));
  }
  if (row.values.sinks && row.values.sinks->at(row.h) != -kInfinity) {
    const double sink = row.values.sinks->at(row.h);
    scores.sink.push_back({-1, sink, kTermRoundings * kU * std::fabs(sink) + kFlush});
    if (!(std::fabs(sink) < kOverflow)) scores.judged = false;
  }
  return scores;
}

/// The softmax of a row and what can go wrong with it.
struct Weights {
  std::vector<Term> keys, sink;
  double reference = 0;        // M
  double sum = 0;              // W, relative to the reference, at least 1
  double shift_magnitude = 0;  // largest number that is used as a reference
  double theta_mean = 0;       // S
  double exponent_mean = 0, exponent_max = 0;
  double kappa_sum = 0;    // of the row sum
  double kappa_value = 0;  // of P V
  double swing = 1;        // by which factor a rounded reference may move all weights
  double log_error = 0;    // of one logarithm of a row sum
  double rescales = 0;     // R
  bool split = false;
  bool small_theta() const { return theta_mean < 0.5; }
};

/// S4: how often a key's weight can be brought to another reference.
double rescales_of(const Row& row, const Scores& scores) {
  const auto count = static_cast<Index>(scores.keys.size());
  if (count == 0) return 0;
  const Index span = scores.keys.back().j - scores.keys.front().j;
  const Index block = std::max<Index>(1, row.path.key_block);
  const Index blocks = std::min(count - 1, span / block + (span % block == 0 ? 0 : 1));
  return static_cast<double>(blocks + (scores.sink.empty() ? 0 : 1) +
                             (row.problem.splits > 1 ? 1 : 0));
}

Weights weigh(const Row& row, const Scores& scores) {
  Weights w{.keys = scores.keys, .sink = scores.sink};
  w.split = row.problem.splits > 1;
  w.rescales = rescales_of(row, scores);
  double key_max = -kInfinity, magnitude = 0, error = 0;
  for (const Term& key : w.keys) {
    key_max = std::max(key_max, key.logit);
    magnitude = std::max(magnitude, std::fabs(key.logit));
    error = std::max(error, key.logit_error);
  }
  w.reference = key_max;
  for (const Term& sink : w.sink) {
    w.reference = std::max(w.reference, sink.logit);
    magnitude = std::max(magnitude, std::fabs(sink.logit));
    error = std::max(error, sink.logit_error);
  }
  const auto count = static_cast<double>(w.keys.size() + w.sink.size());
  const double log_count = std::log(count);
  w.log_error =
      declared(row.path.log_error, 0) * std::max(1.0, log_count) + kLogRoundings * kU * log_count;
  w.shift_magnitude = w.split ? magnitude + error + log_count : std::fabs(w.reference) + error;

  w.swing = std::exp(kReferenceRoundings * kU * (magnitude + error));

  // S4 and, for splits, S9.
  const double exponential = as_exponent(declared(row.path.exp_error, kFaithful));
  double common = (1 + w.rescales) * exponential;
  if (w.rescales > 0) common += kReferenceRoundings * kU * (magnitude + error);
  if (w.split) {
    common += kU * (kShiftRoundings + kLseRoundings) * w.shift_magnitude +
              kDistanceRoundings * kU * log_count + w.log_error + exponential;
  }
  const auto charge = [&](Term& term, double distance) {
    const double visits = w.split ? 2 : 1;  // within its split, and when splits are combined
    term.exponent =
        term.logit_error + common + visits * kDistanceRoundings * kU * (distance + 2 * error);
    term.weight = std::exp(term.logit - w.reference);
    w.sum += term.weight;
  };
  for (Term& key : w.keys) charge(key, w.reference - key.logit);
  for (Term& sink : w.sink) charge(sink, w.keys.empty() ? 0 : std::fabs(sink.logit - key_max));
  for (auto* terms : {&w.keys, &w.sink}) {
    for (Term& term : *terms) {
      term.share = term.weight / w.sum;
      // The second form lets a weight that underflows meet an error that overflows.
      term.theta_share = term.exponent < 1
                             ? term.share * std::expm1(term.exponent)
                             : std::exp(term.logit - w.reference + term.exponent) / w.sum;
      w.theta_mean += term.theta_share;
      w.exponent_mean += term.share * term.exponent;
      w.exponent_max = std::max(w.exponent_max, term.exponent);
    }
  }
  const double parts =
      w.split ? 1 + std::min(static_cast<double>(row.problem.splits), count) : 0;  // S9
  if (!w.keys.empty()) {                                                           // S6
    const auto span = static_cast<double>(w.keys.back().j - w.keys.front().j + 1);
    const auto products = static_cast<double>(w.keys.size());
    const double sums = sum_roundings(row.path, row.problem.input, products, span);
    w.kappa_value = roundings(sums + w.rescales + parts);
  }
  w.kappa_sum = roundings(count + w.rescales + parts);  // S7
  return w;
}

/// What the columns of V hold, as far as one row sees them.
struct Column {
  double o = 0, mean_magnitude = 0, largest = 0, low = kInfinity, high = -kInfinity, total = 0;
  double deviation = 0;    // sum of pi Theta |v - o|
  double stretched = 0;    // sum of pi (1 + Theta) |v|
  double subnormal_p = 0;  // sum of |v| whose weight may be subnormal in the format of P
  double aligned = 0;      // what tensor cores see of `stretched` beyond it
  bool finite = true;
};

std::vector<Column> columns_of(const Row& row, const Scores& scores, const Weights& w,
                               const Rows& v) {
  const bool tensor = row.path.tensor_step != 0;
  std::vector<Column> columns(static_cast<std::size_t>(row.problem.v_depth));
  for (Index j : scores.readable) {
    for (std::size_t c = 0; c < columns.size(); ++c) {
      columns[c].total += std::fabs(v.row(j)[c]);
    }
  }
  for (const Term& key : w.keys) {
    const double stretch = key.share + key.theta_share;
    const bool subnormal =
        row.path.p_format != Format::f32 &&
        key.weight * std::exp(-key.exponent) < smallest_normal(row.path.p_format);
    for (std::size_t c = 0; c < columns.size(); ++c) {
      Column& column = columns[c];
      const double value = v.row(key.j)[c], size = std::fabs(value);
      column.o += key.share * value;
      column.stretched += stretch * size;
      const double seen = tensor ? aligned(row.problem.input, value) : size;
      column.aligned += stretch * (seen - size);
      column.largest = std::max(column.largest, size);
      column.low = std::min(column.low, value);
      column.high = std::max(column.high, value);
      if (subnormal) column.subnormal_p += seen;
    }
  }
  for (const Term& key : w.keys) {
    for (std::size_t c = 0; c < columns.size(); ++c) {
      columns[c].deviation += key.theta_share * std::fabs(v.row(key.j)[c] - columns[c].o);
    }
  }
  for (const Term& sink : w.sink) {  // a key whose value is 0
    for (Column& column : columns) {
      column.deviation += sink.theta_share * std::fabs(column.o);
      column.low = std::min(column.low, 0.0);
      column.high = std::max(column.high, 0.0);
    }
  }
  return columns;
}

/// S5 and S6: what the cast of a subnormal weight, and its alignment by tensor cores, may lose.
double lost_of_subnormal_p(const Row& row, const Weights& w) {
  const Format format = row.path.p_format;
  const double cast = ulp(format, 0) / 2;
  return row.path.tensor_step == 0 ? cast : cast + w.kappa_value * smallest_normal(format);
}

/// S5 to S8 for one element of O.
double bound_of(const Row& row, const Weights& w, const Column& column) {
  if (!(column.total * w.swing < kOverflow)) return kInfinity;  // also catches NaN
  if (row.path.p_format != Format::f32 && w.swing > 2) return kInfinity;
  const Format p_format = row.path.p_format, output = row.problem.output;
  const double rounding_p = p_format == Format::f32 ? 0 : unit_roundoff(p_format);  // S5
  double deviation = column.high - column.low, mean = column.largest, size = column.largest;
  double sum = 1, extra = row.path.tensor_step == 0 ? 0 : smallest_normal(row.problem.input);
  if (w.small_theta()) {
    // Not used otherwise, and then perhaps no number: inf * 0.
    deviation = std::min(deviation, column.deviation / (1 - w.theta_mean));
    mean = std::min(mean, column.stretched / (1 - w.theta_mean));
    size = std::fabs(column.o);
    sum = w.sum;
    extra = std::min(extra, column.aligned / (1 - w.theta_mean));
  }
  const double numerator =
      std::expm1(std::log1p(rounding_p) + std::log1p(w.kappa_value)) * mean +
      (1 + rounding_p) * w.kappa_value * extra +
      kUnderflowRoom * w.swing * column.subnormal_p * lost_of_subnormal_p(row, w) / sum;
  if (w.kappa_sum >= 0.5) return kInfinity;
  const double division = declared(row.path.division_error, kDivision);
  const double quotient = std::pow(1 + division, w.split ? 2 : 1) / (1 - w.kappa_sum) - 1;  // S8
  const double flushed = 4 * kFlush * w.swing * (w.split ? 2 : 1) *
                         (static_cast<double>(w.keys.size()) + w.rescales + 4) *
                         (1 + column.largest);
  const double before = deviation + numerator + (size + deviation + numerator) * quotient + flushed;
  const double reach = size + before * (1 + kEvaluation);
  const double limit = facts(output).max_finite;
  if (reach >= limit + ulp(output, limit) / 2) return kInfinity;
  const double cast = std::max(unit_roundoff(output) * reach, ulp(output, 0) / 2);
  return promise((before + cast) * (1 + kEvaluation));
}

double lse_bound_of(const Row& row, const Weights& w) {
  const double count = static_cast<double>(w.keys.size() + w.sink.size());
  if (w.kappa_sum >= 0.5 || count * w.swing >= kOverflow) return kInfinity;
  const double in_sum =
      std::max(std::log1p(w.theta_mean), w.exponent_mean) - std::log1p(-w.kappa_sum);
  const double lse = std::fabs(w.reference + std::log(w.sum));
  double nats = in_sum + kShiftRoundings * kU * w.shift_magnitude + w.log_error;
  nats += kLseRoundings * kU * (lse + nats);
  nats += kFlush * w.swing * (2 * count + 4);
  const double unit = row.problem.lse_base == LogBase::two ? kLog2e : 1.0;
  return promise(nats * unit * (1 + kEvaluation));
}

void bound_row(const Row& row, const Rows& q, const Rows& k, const Rows& v, double* o,
               double& lse) {
  const Scores scores = scores_of(row, q, k);
  const auto width = static_cast<std::size_t>(row.problem.v_depth);
  if (!scores.judged) {
    std::fill(o, o + width, kInfinity);
    lse = kInfinity;
    return;
  }
  if (scores.keys.empty()) {
    std::fill(o, o + width, 0.0);
    lse = scores.sink.empty() ? 0.0 : lse_bound_of(row, weigh(row, scores));
    return;
  }
  const Weights w = weigh(row, scores);
  const std::vector<Column> columns = columns_of(row, scores, w, v);
  for (std::size_t c = 0; c < width; ++c) o[c] = bound_of(row, w, columns[c]);
  lse = lse_bound_of(row, w);
}

}  // namespace

Bounds order_free_bounds(const Problem& p, const Values& values, const PrecisionPath& path) {
  const auto rows = static_cast<std::size_t>(p.batch * p.query_heads * p.queries);
  const auto width = static_cast<std::size_t>(p.v_depth);
  Bounds bounds{std::vector<double>(rows * width, kInfinity), std::vector<double>(rows, kInfinity)};
  const Index group = p.query_heads / p.kv_heads;
  for (Index b = 0; b < p.batch; ++b) {
    for (Index kv_head = 0; kv_head < p.kv_heads; ++kv_head) {
      const Rows k = rows_of(values.k, b, kv_head, key_length(p, b));
      const Rows v = rows_of(values.v, b, kv_head, key_length(p, b));
      for (Index h = kv_head * group; h < (kv_head + 1) * group; ++h) {
        const Rows q = rows_of(values.q, b, h, query_length(p, b));
        for (Index i = 0; i < query_length(p, b); ++i) {
          const auto number = static_cast<std::size_t>((b * p.query_heads + h) * p.queries + i);
          bound_row({p, values, path, b, h, i}, q, k, v, &bounds.o[number * width],
                    bounds.lse[number]);
        }
      }
    }
  }
  return bounds;
}

}  // namespace attest
