// The rules, one row each, and the baseline that some of them compare with.
#include "reference/model/peer_rules.hpp"

#include <algorithm>
#include <cmath>

#include "reference/formats.hpp"
#include "reference/oracle/exact.hpp"

namespace attest {
namespace {

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double largest = 0;
  for (std::size_t n = 0; n < a.size(); ++n) largest = std::max(largest, std::fabs(a[n] - b[n]));
  return largest;
}

double mean_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t n = 0; n < a.size(); ++n) sum += std::fabs(a[n] - b[n]);
  return sum / static_cast<double>(a.size());
}

double squares(const std::vector<double>& a) {
  double sum = 0;
  for (double number : a) sum += number * number;
  return sum;
}

double squares_of_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t n = 0; n < a.size(); ++n) sum += (a[n] - b[n]) * (a[n] - b[n]);
  return sum;
}

bool all_close(const PeerInputs& in, double absolute, double relative) {
  for (std::size_t n = 0; n < in.o.size(); ++n) {
    if (!(std::fabs(in.o[n] - in.truth[n]) <= absolute + relative * std::fabs(in.truth[n]))) {
      return false;
    }
  }
  return true;
}

/// What the output format loses when 0.3 is added to the truth and taken away again.
double loss_of_a_sum(const PeerInputs& in) {
  std::vector<double> back;
  for (double r : in.truth) {
    back.push_back(rounded(in.output, rounded(in.output, r + 0.3) - 0.3));
  }
  return largest_difference(back, in.truth);
}

const PeerRule kRules[] = {
    {"FlashAttention 2", "max|o - r| <= 2 max|p - r|", "tests/test_flash_attn.py",
     [](const PeerInputs& in) {
       return largest_difference(in.o, in.truth) <= 2 * largest_difference(in.baseline, in.truth);
     }},
    {"FlashAttention 3", "max|o - r| <= 2 max|p - r| + 2 max|((r + 0.3) - 0.3) - r|",
     "hopper/test_flash_attn.py",
     [](const PeerInputs& in) {
       return largest_difference(in.o, in.truth) <=
              2 * largest_difference(in.baseline, in.truth) + 2 * loss_of_a_sum(in);
     }},
    {"FlashInfer", "|o - r| <= 1e-2 + 1e-2 |r|", "tests/attention",
     [](const PeerInputs& in) { return all_close(in, 1e-2, 1e-2); }},
    {"FlashInfer PrimTS", "|o - r| <= 1e-2 + 2e-2 |r| and ||o - r|| <= 2e-2 ||r||",
     "test_attention_ts_context.py",
     [](const PeerInputs& in) {
       return all_close(in, 1e-2, 2e-2) &&
              squares_of_difference(in.o, in.truth) <= 4e-4 * squares(in.truth);
     }},
    {"cuDNN frontend", "|o - r| <= 2e-2 + 2e-2 |r|", "sdpa/fp16.py",
     [](const PeerInputs& in) { return all_close(in, 2e-2, 2e-2); }},
    {"xFormers", "|o - r| <= 2e-2 + 5e-3 |r|", "forward, bf16",
     [](const PeerInputs& in) { return all_close(in, 2e-2, 5e-3); }},
    {"Transformer Engine", "|o - r| <= 1.5e-2 + 1.5e-2 |r|", "tests/pytorch, bf16",
     [](const PeerInputs& in) { return all_close(in, 1.5e-2, 1.5e-2); }},
    {"vLLM", "|o - r| <= 1.5e-2 + 1e-2 |r|", "tests/kernels/attention, bf16",
     [](const PeerInputs& in) { return all_close(in, 1.5e-2, 1e-2); }},
    {"CUTLASS", "max|o - r| < 1e-2 and mean|o - r| < 1e-3", "examples 77 and 88",
     [](const PeerInputs& in) {
       return largest_difference(in.o, in.truth) < 1e-2 && mean_difference(in.o, in.truth) < 1e-3;
     }},
    {"PyTorch", "|o - r| <= 1e-5 + 1.6e-2 |r|", "torch.testing.assert_close, bf16's defaults",
     [](const PeerInputs& in) { return all_close(in, 1e-5, 1.6e-2); }},
    {"llama.cpp", "||o - r||^2 <= 5e-4 ||r||^2", "tests/test-backend-ops.cpp",
     [](const PeerInputs& in) {
       return squares_of_difference(in.o, in.truth) <= 5e-4 * squares(in.truth);
     }},
};

}  // namespace

std::span<const PeerRule> peer_rules() {
  return kRules;
}

std::vector<double> plain_attention(const Problem& problem, const Values& values) {
  const auto round = [&](double number) { return rounded(problem.input, number); };
  const Index group = problem.num_heads_q / problem.num_heads_kv;
  std::vector<double> o;
  for (Index row = 0; row < problem.batch * problem.num_heads_q * problem.seqlen_q; ++row) {
    const Index i = row % problem.seqlen_q, h = row / problem.seqlen_q % problem.num_heads_q;
    const Index b = row / (problem.seqlen_q * problem.num_heads_q), g = h / group;
    std::vector<Index> keys;
    std::vector<double> p;
    for (Index j = 0; j < problem.seqlen_kv; ++j) {
      if (!visible(problem, values, b, i, j)) continue;
      double s = 0;
      for (Index c = 0; c < problem.head_dim; ++c) {
        const double k =
            round(values.k.at(b, g, j, c) * static_cast<double>(problem.softmax_scale));
        s += values.q.at(b, h, i, c) * k;
      }
      keys.push_back(j);
      p.push_back(round(s));
    }
    const double m = keys.empty() ? 0 : *std::max_element(p.begin(), p.end());
    double sum = 0;
    for (double& weight : p) sum += weight = std::exp(weight - m);
    for (double& weight : p) weight = round(weight / sum);
    for (Index c = 0; c < problem.head_dim_v; ++c) {
      double total = 0;
      for (std::size_t n = 0; n < p.size(); ++n) total += p[n] * values.v.at(b, g, keys[n], c);
      o.push_back(rounded(problem.output, round(total)));
    }
  }
  return o;
}

}  // namespace attest
