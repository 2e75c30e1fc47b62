// Tensor files on their way out: the values of a Problem, and the truth.
#include <fmt/format.h>

#include "reference/text.hpp"
#include "reports/formats.hpp"
#include "reports/safetensors.hpp"

namespace attest {
namespace {

template <class Number>
StoredTensor stored(std::string name, Dtype dtype, std::vector<Index> shape,
                    const std::vector<Number>& numbers) {
  return {std::move(name), dtype, std::move(shape), std::as_bytes(std::span(numbers))};
}

StoredTensor stored(std::string name, const Tensor& tensor) {
  return stored(std::move(name), dtype_of(tensor.format),
                {tensor.extent.begin(), tensor.extent.end()}, tensor.bytes);
}

}  // namespace

void write_tensors_file(const std::filesystem::path& path, const Problem& problem,
                        const Values& values) {
  Safetensors content;
  content.metadata = {{"axes", "bhtd"}, {"problem", print(problem)}};
  content.tensors = {stored("q", values.q), stored("k", values.k), stored("v", values.v)};
  if (problem.scales != Scales::none && values.k_scales && values.v_scales) {
    content.tensors.push_back(stored("k_scales", *values.k_scales));
    content.tensors.push_back(stored("v_scales", *values.v_scales));
  }
  if (problem.bias && values.bias) content.tensors.push_back(stored("bias", *values.bias));
  if (problem.alibi && values.slopes) content.tensors.push_back(stored("slopes", *values.slopes));
  if (problem.sinks && values.sinks) content.tensors.push_back(stored("sinks", *values.sinks));
  if (problem.mask && values.mask) {
    const VisibilityMask& mask = *values.mask;
    content.tensors.push_back(
        stored("mask", Dtype::BOOL, {mask.batch, mask.queries, mask.keys}, mask.visible));
  }
  write_whole(path, print_safetensors(content));
}

namespace {

Safetensors truth_content(const Problem& problem, const Truth& truth) {
  const std::vector<Index> o_shape(truth.extent.begin(), truth.extent.end());
  const std::vector<Index> lse_shape(truth.extent.begin(), truth.extent.begin() + 3);
  Safetensors content;
  content.metadata = {{"axes", "bhtd"}, {"problem", print(problem)}};
  content.tensors = {stored("o", Dtype::F64, o_shape, truth.o),
                     stored("lse", Dtype::F64, lse_shape, truth.lse),
                     stored("o_tail", Dtype::F64, o_shape, truth.o_tail),
                     stored("lse_tail", Dtype::F64, lse_shape, truth.lse_tail)};
  return content;
}

}  // namespace

void write_truth_file(const std::filesystem::path& path, const Problem& problem, const Truth& truth,
                      int digits) {
  Safetensors content = truth_content(problem, truth);
  content.metadata["digits"] = fmt::to_string(digits);
  write_whole(path, print_safetensors(content));
}

void write_truth_file(const std::filesystem::path& path, const Problem& problem,
                      const Certified& certified) {
  Safetensors content = truth_content(problem, certified.truth);
  content.metadata["tiers"] = tiers_text(certified);
  const auto shape_of = [&](const char* name) { return content.find(name)->shape; };
  content.tensors.push_back(stored("o_radius", Dtype::F64, shape_of("o"), certified.o_radius));
  content.tensors.push_back(
      stored("lse_radius", Dtype::F64, shape_of("lse"), certified.lse_radius));
  write_whole(path, print_safetensors(content));
}

}  // namespace attest
