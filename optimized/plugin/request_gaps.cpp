// Which tensors of a call lie with gaps behind their rows, heads and batch entries.
#include <array>

#include "optimized/plugin/request.hpp"

namespace attest {
namespace {

struct Row {
  TensorName name;
  Strided tensor;
};
constexpr std::array kRows{
    Row{TensorName::q, Strided::q},
    Row{TensorName::k, Strided::k},
    Row{TensorName::v, Strided::v},
    Row{TensorName::o, Strided::o},
    Row{TensorName::lse, Strided::lse},
    Row{TensorName::bias, Strided::bias},
    Row{TensorName::mask, Strided::mask},
    Row{TensorName::k_scales, Strided::scales},
    Row{TensorName::v_scales, Strided::scales},
    Row{TensorName::block_table, Strided::table},
    Row{TensorName::new_k, Strided::fresh},
    Row{TensorName::new_v, Strided::fresh},
};

/// Which bit of Problem::strided speaks of a tensor.
std::optional<Strided> strided_of(TensorName name) {
  for (const Row& row : kRows) {
    if (row.name == name) return row.tensor;
  }
  return std::nullopt;
}

}  // namespace

void RequestPlan::leave_gaps(const Problem& problem) {
  for (std::uint32_t i = 0; i < header_.tensor_count; ++i) {
    TensorSpec& spec = header_.tensors[i];
    const std::optional<Strided> tensor = strided_of(spec.name);
    spec.strided = tensor && is_strided(problem, *tensor);
    spec.far = spec.strided && is_far(problem);
  }
}

}  // namespace attest
