// Tensor files on their way out: the values of a Problem, and the truth.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

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

Safetensors content_of(const Problem& problem, const Values& values) {
  Safetensors content;
  content.metadata = {{"axes", "bhtd"}, {"problem", print(problem)}};
  content.tensors = {stored("q", values.q), stored("k", values.k), stored("v", values.v)};
  if (problem.scales != Scales::none && values.k_scales && values.v_scales) {
    content.tensors.push_back(stored("k_scales", *values.k_scales));
    content.tensors.push_back(stored("v_scales", *values.v_scales));
  }
  if (problem.bias && values.bias) content.tensors.push_back(stored("bias", *values.bias));
  if (problem.alibi && values.alibi_slopes)
    content.tensors.push_back(stored("slopes", *values.alibi_slopes));
  if (problem.sinks && values.sinks) content.tensors.push_back(stored("sinks", *values.sinks));
  if (problem.mask && values.mask) {
    const VisibilityMask& mask = *values.mask;
    content.tensors.push_back(
        stored("mask", Dtype::BOOL, {mask.batch, mask.queries, mask.keys}, mask.visible));
  }
  return content;
}

/// Numbers on their way into a file, in the format of a kernel's answer. Each is rounded once.
Tensor rounded(const std::vector<double>& numbers, Format format, const Extent4& extent) {
  Tensor tensor(format, extent);
  for (Index flat = 0; flat < tensor.count(); ++flat) {
    tensor.set(flat, numbers[static_cast<std::size_t>(flat)]);
  }
  return tensor;
}

/// (batch, head, row, column) as (batch, row, head, column).
std::vector<std::byte> heads_and_rows_exchanged(const StoredTensor& tensor) {
  const auto extent = [&](std::size_t axis) {
    return static_cast<std::size_t>(tensor.shape[axis]);
  };
  const std::size_t heads = extent(1), rows = extent(2);
  const std::size_t line = extent(3) * static_cast<std::size_t>(bytes_of(tensor.dtype));
  std::vector<std::byte> exchanged(tensor.bytes.size());
  for (std::size_t b = 0; b < extent(0); ++b) {
    for (std::size_t h = 0; h < heads; ++h) {
      for (std::size_t row = 0; row < rows; ++row) {
        const auto from = tensor.bytes.subspan(((b * heads + h) * rows + row) * line, line);
        std::ranges::copy(from, exchanged.begin() + static_cast<std::ptrdiff_t>(
                                                        ((b * rows + row) * heads + h) * line));
      }
    }
  }
  return exchanged;
}

/// What went in, the truth as a kernel without any error of its own would answer, and as it is.
class TruthFile {
 public:
  TruthFile(const TensorsFile& file, const Truth& truth)
      : rows_before_heads_(file.rows_before_heads),
        content_(content_of(file.problem, file.values)),
        o_(rounded(truth.o, file.problem.output, truth.extent)),
        lse_(rounded(truth.lse, Format::f32,
                     {truth.extent[0], truth.extent[1], truth.extent[2], 1})),
        o_shape_(truth.extent.begin(), truth.extent.end()),
        lse_shape_(truth.extent.begin(), truth.extent.begin() + 3) {
    content_.tensors.push_back(stored("o", o_));
    content_.tensors.push_back(stored("lse", dtype_of(lse_.format), lse_shape_, lse_.bytes));
    add("truth", truth.o, truth.lse);
    add("tail", truth.o_tail, truth.lse_tail);
  }
  TruthFile(const TruthFile&) = delete;  // what is to be written lies in its members
  TruthFile& operator=(const TruthFile&) = delete;

  void add(std::string_view what, const std::vector<double>& o, const std::vector<double>& lse) {
    content_.tensors.push_back(stored(fmt::format("o_{}", what), Dtype::F64, o_shape_, o));
    content_.tensors.push_back(stored(fmt::format("lse_{}", what), Dtype::F64, lse_shape_, lse));
  }
  void say(const std::string& key, const std::string& text) { content_.metadata[key] = text; }
  void write(const std::filesystem::path& path) const {
    if (!rows_before_heads_) return write_whole(path, print_safetensors(content_));
    Safetensors content = content_;
    content.metadata["axes"] = "bthd";
    std::vector<std::vector<std::byte>> kept;  // what the tensors then show
    for (StoredTensor& tensor : content.tensors) {
      constexpr std::array<std::string_view, 3> kInputs{"q", "k", "v"};
      const bool answer = tensor.name == "o" || tensor.name.starts_with("o_");
      if (!answer && std::ranges::find(kInputs, tensor.name) == kInputs.end()) continue;
      kept.push_back(heads_and_rows_exchanged(tensor));
      tensor.bytes = kept.back();
      std::swap(tensor.shape[1], tensor.shape[2]);
    }
    write_whole(path, print_safetensors(content));
  }

 private:
  bool rows_before_heads_;
  Safetensors content_;
  Tensor o_, lse_;
  std::vector<Index> o_shape_, lse_shape_;
};

}  // namespace

void write_tensors_file(const std::filesystem::path& path, const Problem& problem,
                        const Values& values) {
  write_whole(path, print_safetensors(content_of(problem, values)));
}

void write_truth_file(const std::filesystem::path& path, const TensorsFile& file,
                      const Truth& truth, int digits) {
  TruthFile out(file, truth);
  out.say("digits", fmt::to_string(digits));
  out.write(path);
}

void write_truth_file(const std::filesystem::path& path, const TensorsFile& file,
                      const Certified& certified) {
  TruthFile out(file, certified.truth);
  out.add("radius", certified.o_radius, certified.lse_radius);
  out.say("tiers", tiers_text(certified));
  out.write(path);
}

}  // namespace attest
