// The stages before P: which keys a row sees, their logits, and exponentials.
#include <algorithm>

#include "reference/model/row.hpp"
#include "reference/oracle/exact.hpp"

namespace attest::model {
namespace {

constexpr double kRounding = 0x1p-24;  // unit roundoff of f32

std::vector<Index> seen_keys(const Plan& plan, const Head& head, Index h, Index i) {
  std::vector<Index> keys;
  for (Index j = 0; j < key_length(plan.problem, head.b); ++j) {
    if (weighed(plan.problem, plan.values, head.b, h, i, j)) keys.push_back(j);
  }
  const Index behind = keys.empty() ? 0 : keys.back() + 1;
  if (plan.has(Defect::key_dropped) && keys.size() > 1) keys.pop_back();
  if (plan.has(Defect::key_leaked) && behind < head.keys) keys.push_back(behind);
  return keys;
}

double inner_product(const Plan& plan, const Head& head, const Operands& q, Index j) {
  const auto head_dim = static_cast<std::size_t>(plan.problem.head_dim);
  const std::size_t first = static_cast<std::size_t>(j) * head_dim;
  if (plan.path.tensor_step != 0 && !plan.scores.exact) {
    return tensor_sum(plan.score_core, 0, q, 0, head.k, first, head_dim);
  }
  double sum = 0;
  for (std::size_t c = 0; c < head_dim; ++c) {
    sum = plan.scores.fused(q.value[c], head.k.value[first + c], sum);
  }
  return sum;
}

double logit(const Plan& plan, const Head& head, Index h, Index i, Index j, double x) {
  const Rounding& f32 = plan.scores;
  const auto cut = [&](double number) {
    const double s = f32(number);
    return plan.scores.exact ? s : rounded(plan.path.scores_format, s);
  };
  double s = cut(x * head.k_scale[static_cast<std::size_t>(j)]);
  if (plan.plain) return s;
  s = cut(s * plan.scale);
  if (plan.problem.softcap > 0) {
    const double cap = f32(plan.problem.softcap);
    s = cut(cap * cut(std::tanh(cut(s / cap))));
  }
  if (plan.values.bias) s = cut(s + plan.values.bias->at(head.b, h, i, j));
  if (plan.values.alibi_slopes) {
    const auto distance = static_cast<double>(std::abs(i + diagonal(plan.problem, head.b) - j));
    s = cut(f32.fused(-plan.values.alibi_slopes->at(h), f32(distance), s));
  }
  return s;
}

/// exp2(t), with what the machine or a defect makes of it; the power of `certain` has no error.
double exponential_of(const Plan& plan, double t, double certain, double share) {
  double power = std::exp2(t);
  if (t == certain) return plan.exponential(power);
  if (plan.has(Defect::exp_biased)) power *= 1 + 0x1p-12;
  if (!plan.exponential.exact && plan.path.exp_error > kRounding) {
    power *= 1 + share * (plan.path.exp_error - kRounding);  // the rest is the rounding to f32
  }
  return plan.exponential(power);
}

}  // namespace

double Rounding::fused(double a, double b, double c) const {
  if (exact) return std::fma(a, b, c);
  const auto x = static_cast<float>(a), y = static_cast<float>(b), z = static_cast<float>(c);
  if (static_cast<double>(x) != a || static_cast<double>(y) != b || static_cast<double>(z) != c) {
    return (*this)(std::fma(a, b, c));  // a stage before this one is exact
  }
  const float product = x * y;
  // Products of short formats are f32 numbers, and then an addition is all there is.
  if (static_cast<double>(product) == a * b) return static_cast<double>(product + z);
  return static_cast<double>(std::fma(x, y, z));
}

std::vector<double> logits_of(const Plan& plan, const Head& head, Index h, Index i) {
  const auto head_dim = static_cast<std::size_t>(plan.problem.head_dim);
  Operands q;
  q.resize(head_dim);
  for (std::size_t c = 0; c < head_dim; ++c) {
    q.set(c, plan.values.q.at(head.b, h, i, static_cast<Index>(c)), plan.q_format);
  }
  std::vector<double> z(static_cast<std::size_t>(head.keys), -kInfinity);
  for (Index j : seen_keys(plan, head, h, i)) {
    const double s = logit(plan, head, h, i, j, inner_product(plan, head, q, j));
    z[static_cast<std::size_t>(j)] =
        plan.has(Defect::scores_in_bf16) ? rounded(Format::bf16, s) : s;
  }
  return z;
}

double difference_power(const Plan& plan, double z, double m, double share) {
  const Rounding& f32 = plan.exponential;
  return exponential_of(plan, f32(f32(z - m) * plan.bits), 0, share);
}

double weight_of(const Plan& plan, double z, double m, double share) {
  const Rounding& f32 = plan.exponential;
  const double shift = plan.path.p_scale_log2;
  if (!plan.model.freedom.fused_exponent) {
    return f32(difference_power(plan, z, m, share) * std::exp2(shift));
  }
  const double reference = f32(f32(m * plan.bits) - shift);
  const double t = f32.exact ? (z - m) * plan.bits + shift : f32.fused(z, plan.bits, -reference);
  return exponential_of(plan, t, shift, share);
}

}  // namespace attest::model
