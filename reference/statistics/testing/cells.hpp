// Kernels, right and wrong, and inputs for the tests of this folder: reference/model of declared
// paths, and the older simulated kernels, which share no code with it.
#pragma once
#include <cstdio>
#include <string>

#include "reference/bound/testing/simulated_kernel.hpp"
#include "reference/model/model.hpp"
#include "reference/random_values.hpp"
#include "reference/statistics/z_tally.hpp"
#include "reference/text.hpp"

namespace attest {

struct TestCell {
  std::string name;
  Problem problem;
  PrecisionPath path;
};

inline Problem cell_problem(Format input, Format output, Index rows, Index keys) {
  return {.seqlen_q = rows,
          .seqlen_kv = keys,
          .head_dim = 64,
          .head_dim_v = 64,
          .input = input,
          .output = output,
          .softmax_scale = default_scale(64)};
}

inline PrecisionPath cell_path(Format p_format, Index tensor_step, Index block) {
  PrecisionPath path{.p_format = p_format, .keys_per_rescale = block, .tensor_step = tensor_step};
  path.kv_block = block;
  path.in_order = true;
  return path;
}

inline void make_positive(Tensor& tensor) {
  for (Index i = 0; i < tensor.count(); ++i) tensor.set(i, std::fabs(tensor.at(i)));
}

/// Independent normals, or magnitudes of normals where v is positive.
inline Values drawn(const Problem& p, bool positive, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Values values = random_values(p, random);
  if (positive) make_positive(values.v);
  return values;
}

inline Tensor tensor_of(const Problem& p, const std::vector<double>& o) {
  Tensor tensor(p.output, {p.batch, p.num_heads_q, p.seqlen_q, p.head_dim_v});
  for (std::size_t at = 0; at < o.size(); ++at) tensor.set(static_cast<Index>(at), o[at]);
  return tensor;
}

inline Tensor modelled(const Problem& p, const Values& values, const PrecisionPath& path,
                       Defect defect = Defect::none) {
  Model model;
  model.defect = defect;
  return tensor_of(p, model_attention(p, values, path, model).o);
}

inline double deviation_of(const ZSummary& z) {
  return std::sqrt(z.chi_square);
}

inline void print_header() {
  std::printf("%-36s %4s %6s %6s %6s | Z, and deviation over rows, along %s %s %s %s %s\n", "cell",
              "rows", "sd z", "mean", "max", "inward", "offset", "scattered", "sharper", "others");
}

inline void print_row(const std::string& name, const ZSummary& z) {
  std::printf("%-36s %4lld %6.3f %6.2f %6.2f |", name.c_str(), static_cast<long long>(z.rows),
              deviation_of(z), z.inward.mean, z.largest);
  for (const Standardised* one : {&z.inward, &z.offset, &z.scattered, &z.sharper, &z.others}) {
    std::printf(" %6.2f %.2f", one->total, one->deviation);
  }
  for (const ZAlarm& alarm : z.alarms) std::printf(" %s!", alarm.test.c_str());
  std::printf("\n");
}

inline std::string alarms_of(const ZSummary& z) {
  std::string text;
  for (const ZAlarm& alarm : z.alarms) {
    text +=
        alarm.test + " " + std::to_string(alarm.found) + " > " + std::to_string(alarm.limit) + "; ";
  }
  return text;
}

}  // namespace attest
