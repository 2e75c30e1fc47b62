// judge: somebody's output for somebody's tensors, from any machine or framework, element by
// element against what a kernel of the declared precision path may give.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <limits>

#include "properties/by_heads.hpp"
#include "properties/diagnosis.hpp"
#include "reference/formats.hpp"
#include "reference/precision_text.hpp"
#include "reference/text.hpp"
#include "reports/commands/commands.hpp"
#include "reports/formats.hpp"
#include "reports/judgement.hpp"
#include "reports/rendering.hpp"
#include "reports/safetensors.hpp"
#include "reports/stage.hpp"

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
      o = answer_of(*file.o, p.output, {p.batch, p.num_heads_q, p.seqlen_q, p.head_dim_v},
                    name + ": o");
    }
    if (file.lse) {
      lse = answer_of(*file.lse, Format::f32, {p.batch, p.num_heads_q, p.seqlen_q, 1},
                      name + ": lse");
    }
  }
  Given given() const { return {o ? &*o : nullptr, lse ? &*lse : nullptr}; }
};

Index count_of(const std::optional<std::uint64_t>& asked) {
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<Index>::max());
  return static_cast<Index>(std::min(asked.value_or(0), kMost));
}

RowSample sample_of(const JudgeOptions& options) {
  return {count_of(options.rows), count_of(options.heads), options.seed};
}

/// A file, what is accepted of it under its path, and the verdicts.
struct Work {
  const TensorsFile& file;
  const PrecisionPath path;
  const Answer answer;
  const std::vector<bool> wanted;
  const Acceptance accepted;
  Judgement judgement;

  Work(const TensorsFile& tensors, const JudgeOptions& options,
       std::atomic<Index>* heads_done = nullptr)
      : file(tensors),
        path(declared_path(options, file)),
        answer(file, options.what),
        wanted(rows_in(sample_of(options), file.problem)),
        accepted(acceptance_by_heads(file.problem, file.values, path, Strength::quantised, wanted,
                                     heads_done)),
        judgement(judge(file.problem, path, accepted, answer.given(), sample_of(options))) {}

  bool holds() const { return judgement.judged() > 0 && judgement.refused() == 0; }
};

/// Axes cannot be told from shapes: a file with rows before heads may look like another one with
/// heads before rows. Then everything is refused, and this says why.
bool fits_with_rows_first(const JudgeOptions& options, const TensorsFile& as_read) {
  try {
    const TensorsFile file = read_tensors_file(options.what, options.problem + " layout=bthd");
    if (file.problem.seqlen_q == as_read.problem.seqlen_q) return false;  // its axes are said
    return Work(file, options).holds();
  } catch (const Error&) {
    return false;
  }
}

/// Whether a tensor is of f32 and yet every number of it is one of `format`. Of numbers that are
/// computed in f32 one in 2^13 (f16) or 2^16 (bf16) is, so a few are enough; zeros tell nothing.
bool is_widened(const Tensor& tensor, Format format) {
  bool any = false;
  for (Index flat = 0; flat < tensor.count(); ++flat) {
    const double number = tensor.at(flat);
    if (!std::isfinite(number) || number == 0) continue;
    if (rounded(format, number) != number) return false;
    any = true;
  }
  return any;
}

std::string_view article_of(Format format) {
  return format == Format::f16 ? "an" : "a";
}

/// What a kernel wrote in 16 bits and somebody stored in f32 is refused: between two numbers of 16
/// bits there are many of f32 that are nearer to the truth.
std::string say_widened(const JudgeOptions& options, const Work& work) {
  if (work.file.problem.output != Format::f32 || !work.answer.o) return {};
  std::vector<Format> formats{Format::bf16, Format::f16};
  if (work.file.problem.input == Format::f16) std::swap(formats[0], formats[1]);
  for (const Format format : formats) {
    if (!is_widened(*work.answer.o, format)) continue;
    const std::string word = fmt::format("out={}", name_of(format));
    JudgeOptions other = options;
    other.problem += " " + word;
    try {
      const TensorsFile file = read_tensors_file(other.what, other.problem);
      const Index refused = Work(file, other).judgement.refused();
      return fmt::format("every number of o is {} {} number: say --problem {}, with which {}",
                         article_of(format), name_of(format), word,
                         refused == 0                         ? "everything would be accepted"
                         : refused < work.judgement.refused() ? "fewer would be refused"
                                                              : "it would be judged as that");
    } catch (const Error&) {  // out is said, and the file is f32 indeed
      return {};
    }
  }
  return {};
}

/// LSE has no format of its own: kernels write it in f32, and what was rounded since is refused.
std::string say_rounded_lse(const Work& work) {
  if (!work.answer.lse || work.judgement.lse->refused == 0) return {};
  for (const Format format : {Format::bf16, Format::f16}) {
    if (!is_widened(*work.answer.lse, format)) continue;
    return fmt::format(
        "every number of lse is {} {} number; it is judged as f32, which kernels "
        "write: store it before it is rounded to fewer bits",
        article_of(format), name_of(format));
  }
  return {};
}

std::vector<std::string> explained(const JudgeOptions& options, const Work& work) {
  if (const std::string widened = say_widened(options, work); !widened.empty()) return {widened};
  if (fits_with_rows_first(options, work.file)) {
    return {
        "everything would be accepted if the file were read with rows before heads: say "
        "--problem layout=bthd"};
  }
  const std::string rounded_lse = say_rounded_lse(work);
  if (!rounded_lse.empty() && (!work.judgement.o || work.judgement.o->refused == 0)) {
    return {rounded_lse};
  }
  std::vector<std::string> remarks = diagnose(work.file.problem, work.file.values, work.path,
                                              work.accepted, work.answer.given(), work.wanted);
  if (!rounded_lse.empty()) remarks.insert(remarks.begin(), rounded_lse);
  return remarks;
}

/// What a path says to no avail.
std::vector<std::string> said_in_vain(const Problem& problem, const PrecisionPath& path) {
  std::vector<std::string> remarks, words;
  if (path.split_size != 0 && problem.num_splits == 1) {
    remarks.push_back(
        fmt::format("the path says split_size={}, but the problem says nothing of splits, so all "
                    "keys are taken for "
                    "one part: say --problem splits=PARTS if the kernel split them",
                    print_split_size(path.split_size)));
  }
  if (path.kv_block == 0) {
    if (path.interleaved_accumulators > 1)
      words.push_back(fmt::format("interleaved_accumulators={}", path.interleaved_accumulators));
    if (path.kv_blocks_descending) words.emplace_back("kv_blocks_descending");
    if (path.partial_row_sums > 1)
      words.push_back(fmt::format("partial_row_sums={}", path.partial_row_sums));
  }
  if (!words.empty()) {
    remarks.push_back(
        fmt::format("the path says {}, which tells nothing without kv_block=KEYS: with "
                    "that it would be judged more sharply",
                    joined(words, " ")));
  }
  if (path.kv_block > 0 && path.split_size == 0 && problem.num_splits > 1) {
    remarks.push_back(
        fmt::format("the path says kv_block={}, which tells nothing of split keys without "
                    "split_size=: with that they would be judged more sharply",
                    path.kv_block));
  }
  return remarks;
}

bool same_file(const std::string& a, const std::string& b) {
  std::error_code failed;
  return std::filesystem::equivalent(a, b, failed);
}

/// Before any work: what could not be written afterwards would be lost.
void require_files(const JudgeOptions& options) {
  for (const std::string& out : {options.out, options.json}) {
    if (out.empty()) continue;
    if (same_file(options.what, out)) {
      throw Error(fmt::format("{}: this would replace the file that is judged", out));
    }
    require_writable_file(out);
  }
  if (!options.out.empty() && !options.json.empty() &&
      std::filesystem::absolute(options.out).lexically_normal() ==
          std::filesystem::absolute(options.json).lexically_normal()) {
    throw Error(fmt::format("{}: --json and --out name the same file", options.out));
  }
}

}  // namespace

int judge(const JudgeOptions& options) {
  const TensorsFile file = read_tensors_file(options.what, options.problem);
  if (!file.o && !file.lse) {
    throw Error(fmt::format("{}: nothing to judge: it holds neither a tensor o nor a tensor lse",
                            options.what));
  }
  require_files(options);
  const PrecisionPath path = declared_path(options, file);
  fmt::print("{}: judging {}\n  problem {}\n  path    {}\n", version_text(), options.what,
             print(file.problem), print(path));
  std::fflush(stdout);
  std::optional<Stage> stage;
  std::atomic<Index> heads_done = 0;
  const Index heads = file.problem.batch * file.problem.num_heads_q;
  stage.emplace(stderr, "what is accepted", Pieces{&heads_done, heads, "heads"});
  Work work(file, options, &heads_done);
  Judgement& judgement = work.judgement;
  stage.emplace(stderr, "which wrong answers would be accepted");
  look_at_power(judgement, file.values, work.accepted, work.answer.given());
  judgement.remarks = said_in_vain(file.problem, path);
  if (judgement.refused() > 0) {
    stage.emplace(stderr, "what the refused numbers may mean");
    for (std::string& remark : explained(options, work)) {
      judgement.remarks.push_back(std::move(remark));
    }
  }
  stage.reset();
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
