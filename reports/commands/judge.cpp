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

/// What was given, as tensors that are judged.
struct Answer {
  std::optional<Tensor> o, lse;

  Answer(const TensorsFile& file, const std::string& name) {
    const Problem& p = file.problem;
    if (file.o) {
      o = answer_of(*file.o, p.output, {p.batch, p.query_heads, p.queries, p.v_depth},
                    name + ": o");
    }
    if (file.lse) {
      lse =
          answer_of(*file.lse, Format::f32, {p.batch, p.query_heads, p.queries, 1}, name + ": lse");
    }
  }
  Given given() const { return {o ? &*o : nullptr, lse ? &*lse : nullptr}; }
};

/// Axes cannot be told from shapes: a file with rows before heads may look like another one with
/// heads before rows. Then everything is refused, and this says why.
bool fits_with_rows_first(const JudgeOptions& options, const TensorsFile& as_read) {
  try {
    const TensorsFile file = read_tensors_file(options.what, options.problem + " layout=bthd");
    if (file.problem.queries == as_read.problem.queries) return false;  // its axes are said
    const Answer answer(file, options.what);
    const Judgement other =
        judge(file.problem, file.values, declared_path(options, file), answer.given(), false);
    return other.judged() > 0 && other.refused() == 0;
  } catch (const Error&) {
    return false;
  }
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
  const Answer answer(file, options.what);
  fmt::print("{}: judging {}\n  problem {}\n  path    {}\n", version_text(), options.what,
             print(file.problem), print(path));
  std::fflush(stdout);
  Judgement judgement = judge(file.problem, file.values, path, answer.given());
  if (judgement.refused() > 0 && fits_with_rows_first(options, file)) {
    judgement.remarks = {
        "everything would be accepted if the file were read with rows before heads: say "
        "--problem layout=bthd"};
  }
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
