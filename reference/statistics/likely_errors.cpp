// The model of README.md, one row after another.
#include "reference/statistics/likely_errors.hpp"

#include "reference/oracle/exact.hpp"
#include "reference/statistics/row_moments.hpp"

namespace attest {

LikelyErrors likely_errors(const Problem& p, const Values& values, const PrecisionPath& path,
                           Index tensor_step, std::uint64_t seed) {
  const std::size_t rows = row_count(p);
  const auto elements = rows * static_cast<std::size_t>(p.head_dim_v);
  LikelyErrors all{std::vector<double>(elements), std::vector<double>(elements),
                   std::vector<double>(elements), std::vector<std::uint8_t>(elements),
                   std::vector<LikelyRow>(rows)};
  const Index group = p.num_heads_q / p.num_heads_kv;
  for (Index b = 0; b < p.batch; ++b) {
    for (Index kv_head = 0; kv_head < p.num_heads_kv; ++kv_head) {
      const statistics::Head head(p, values, path, b, kv_head, tensor_step);
      for (Index h = kv_head * group; h < (kv_head + 1) * group; ++h) {
        for (Index i = 0; i < query_length(p, b); ++i) {
          const std::size_t row = row_number(p, b, h, i);
          const auto gathered = statistics::gather(head, {b, h, i});
          if (gathered) statistics::add_moments(head, *gathered, row, seed, all);
        }
      }
    }
  }
  return all;
}

}  // namespace attest
