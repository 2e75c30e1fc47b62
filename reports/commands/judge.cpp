// judge: somebody's output for somebody's tensors, from any machine or framework, element by
// element against what a kernel of the declared precision path may give.
#include <fmt/format.h>

#include <cmath>
#include <filesystem>

#include "reference/precision_text.hpp"
#include "reference/text.hpp"
#include "reports/commands/commands.hpp"
#include "reports/formats.hpp"
#include "reports/judgement.hpp"
#include "reports/safetensors.hpp"

namespace attest {
namespace {

std::string path_names() {
  std::string names;
  for (const KnownPath& known : known_paths()) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", known.name);
  }
  return names;
}

/// Without a path nothing can be judged: what a kernel of f32 may do refuses any that rounds its
/// weights to bf16, and what that one may do hides what is wrong with the first.
PrecisionPath declared_path(const JudgeOptions& options, const TensorsFile& file) {
  if (!options.path.empty()) return parse_precision(options.path, file.problem.input);
  if (!file.precision) {
    throw Error(
        fmt::format("{}: it is not said how the kernel rounds, and what is right depends on that: "
                    "give --path 'p_format=bf16 exp_error=2.98e-07' with what is known of it, or a "
                    "known path ({}: see `attest list paths`), or a metadata entry \"precision\"",
                    options.what, path_names()));
  }
  try {
    return parse_precision(*file.precision, file.problem.input);
  } catch (const Error& error) {
    throw Error(fmt::format("{}: metadata entry precision: {}", options.what, error.what()));
  }
}

/// The answer in the format in which it is judged, or Error: a number of another format would be
/// judged as one that the kernel cannot have written.
Tensor answer_of(const std::vector<double>& numbers, Format format, const Extent4& extent,
                 const std::string& where) {
  Tensor tensor(format, extent);
  for (Index flat = 0; flat < tensor.count(); ++flat) {
    const double number = numbers[static_cast<std::size_t>(flat)];
    tensor.set(flat, number);
    if (tensor.at(flat) == number || std::isnan(number)) continue;
    throw Error(
        fmt::format("{}: element {} is {:.17g}, which is no {} number, so no kernel with that "
                    "output wrote it; --problem out=FORMAT says another one, and what was widened "
                    "and computed with since cannot be judged",
                    where, flat, number, name_of(format)));
  }
  return tensor;
}

bool same_file(const std::string& a, const std::string& b) {
  std::error_code failed;
  return std::filesystem::equivalent(a, b, failed);
}

}  // namespace

int judge(const JudgeOptions& options) {
  const TensorsFile file = read_tensors_file(options.what, options.problem);
  if (!file.o && !file.lse) {
    throw Error(fmt::format("{}: nothing to judge: it holds neither a tensor o nor a tensor lse",
                            options.what));
  }
  for (const std::string& out : {options.out, options.json}) {
    if (!out.empty() && same_file(options.what, out)) {
      throw Error(fmt::format("{}: this would replace the file that is judged", out));
    }
  }
  const PrecisionPath path = declared_path(options, file);
  const Problem& p = file.problem;
  std::optional<Tensor> o, lse;
  if (file.o) {
    o = answer_of(*file.o, p.output, {p.batch, p.query_heads, p.queries, p.v_depth},
                  options.what + ": o");
  }
  if (file.lse) {
    lse = answer_of(*file.lse, Format::f32, {p.batch, p.query_heads, p.queries, 1},
                    options.what + ": lse");
  }
  fmt::print("{}: judging {}\n  problem {}\n  path    {}\n", version_text(), options.what, print(p),
             print(path));
  std::fflush(stdout);
  const Judgement judgement =
      judge(p, file.values, path, {o ? &*o : nullptr, lse ? &*lse : nullptr});
  fmt::print("{}", text_of(judgement));
  if (!options.json.empty()) {
    write_whole(options.json, json_of(judgement, version_text(), options.what));
  }
  if (!options.out.empty()) write_judgement_file(options.out, judgement);
  const Conclusion conclusion = conclusion_of(judgement);
  fmt::print("{}\n", conclusion.reason);
  return conclusion.exit_code;
}

}  // namespace attest
