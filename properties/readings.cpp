// The changes that are tried, as three lists.
#include "properties/readings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "reference/formats.hpp"
#include "reference/precision_text.hpp"
#include "reference/text.hpp"
#include "reference/validity.hpp"

namespace attest {
namespace {

constexpr Index kOneBlock = Index{1} << 40;  // more keys than any Problem has

/// Collects readings, none that says what is said already and none that is impossible.
class Readings {
 public:
  Readings(const Problem& problem, const PrecisionPath& path) : problem_(problem), path_(path) {}

  void problem(std::string words, const std::function<void(Problem&)>& change) {
    Problem other = problem_;
    change(other);
    if (other == problem_ || illegality(other)) return;
    found_.push_back({std::move(words), std::move(other), path_});
  }
  void path(std::string words, const std::function<void(PrecisionPath&)>& change) {
    PrecisionPath other = path_;
    change(other);
    const bool known = std::any_of(found_.begin(), found_.end(),
                                   [&](const Reading& each) { return each.path == other; });
    if (other == path_ || known) return;
    found_.push_back({std::move(words), problem_, other});
  }
  std::vector<Reading> take() { return std::move(found_); }

 private:
  const Problem& problem_;
  const PrecisionPath& path_;
  std::vector<Reading> found_;
};

void set_block(PrecisionPath& path, Index block) {
  if (path.keys_per_rescale == path.kv_block) path.keys_per_rescale = block;
  path.kv_block = block;
}

std::string block_words(Index block) {
  return block == kOneBlock ? "one block of all keys" : fmt::format("kv_block={}", block);
}

}  // namespace

std::vector<Reading> other_problems(const Problem& problem, const PrecisionPath& path) {
  Readings readings(problem, path);
  readings.problem(problem.causal ? "nothing of causal" : "causal",
                   [](Problem& p) { p.causal = !p.causal; });
  readings.problem(
      problem.alignment == Alignment::top_left ? "align=bottom_right" : "align=top_left",
      [](Problem& p) {
        p.alignment =
            p.alignment == Alignment::top_left ? Alignment::bottom_right : Alignment::top_left;
      });
  readings.problem(problem.lse_base == LogBase::two ? "lse=e" : "lse=two", [](Problem& p) {
    p.lse_base = p.lse_base == LogBase::two ? LogBase::e : LogBase::two;
  });
  readings.problem("scale=1", [](Problem& p) { p.softmax_scale = 1; });
  const float usual = default_scale(problem.head_dim);
  readings.problem(fmt::format("scale={} (1/sqrt(head_dim))", usual),
                   [&](Problem& p) { p.softmax_scale = usual; });
  for (const auto& [factor, why] : {std::pair{std::log(2.0), "exp2 stands for exp"},
                                    std::pair{1 / std::log(2.0), "log2 e comes in twice"}}) {
    const auto scale = static_cast<float>(static_cast<double>(problem.softmax_scale) * factor);
    readings.problem(fmt::format("scale={} ({})", scale, why),
                     [&](Problem& p) { p.softmax_scale = scale; });
  }
  readings.problem("no window", [](Problem& p) { p.window_left = p.window_right = kUnbounded; });
  readings.problem("no softcap", [](Problem& p) { p.softcap = 0; });
  readings.problem(problem.empty_row == EmptyRow::nan ? "empty=zero" : "empty=nan", [](Problem& p) {
    p.empty_row = p.empty_row == EmptyRow::nan ? EmptyRow::zero : EmptyRow::nan;
  });
  return readings.take();
}

std::vector<Reading> other_paths(const Problem& problem, const PrecisionPath& path) {
  Readings readings(problem, path);
  for (const Format format : {Format::f32, Format::f16, Format::bf16}) {
    readings.path(fmt::format("p_format={}", name_of(format)),
                  [&](PrecisionPath& p) { p.p_format = format; });
  }
  readings.path(
      path.row_sum_of_rounded_p ? "nothing of row_sum_of_rounded_p" : "row_sum_of_rounded_p",
      [](PrecisionPath& p) {
        p.row_sum_of_rounded_p = !p.row_sum_of_rounded_p;
        p.normalize_before_cast = p.normalize_before_cast && !p.row_sum_of_rounded_p;
      });
  readings.path(
      path.normalize_before_cast ? "nothing of normalize_before_cast" : "normalize_before_cast",
      [](PrecisionPath& p) {
        p.normalize_before_cast = !p.normalize_before_cast;
        p.row_sum_of_rounded_p = false;
      });
  if (problem.num_splits > 1) {
    for (const Index part : {kEvenSplits, kPowerOfTwoSplits}) {
      readings.path("split_size=" + print_split_size(part),
                    [&](PrecisionPath& p) { p.split_size = part; });
    }
  }
  if (path.kv_block > 0) {
    const std::string turned =
        path.kv_blocks_descending ? "nothing of kv_blocks_descending" : "kv_blocks_descending";
    const auto turn = [](PrecisionPath& p) { p.kv_blocks_descending = !p.kv_blocks_descending; };
    readings.path(turned, turn);
    std::vector<Index> blocks{16,  32,  48,  64,  80,  96,  112,      128,
                              144, 160, 176, 192, 224, 256, kOneBlock};
    for (const Index block : {path.kv_block / 2, path.kv_block * 2}) {
      if (block > 0 && block < kOneBlock) blocks.insert(blocks.begin(), block);
    }
    for (const Index block : blocks) {
      readings.path(block_words(block), [&](PrecisionPath& p) { set_block(p, block); });
      readings.path(block_words(block) + " and " + turned, [&](PrecisionPath& p) {
        set_block(p, block);
        turn(p);
      });
    }
    for (const Index streams : {1, 2, 4, 8}) {
      readings.path(fmt::format("interleaved_accumulators={}", streams),
                    [&](PrecisionPath& p) { p.interleaved_accumulators = streams; });
    }
  }
  if (path.in_order) {
    readings.path("nothing of in_order", [](PrecisionPath& p) { p.in_order = false; });
  }
  return readings.take();
}

std::vector<Reading> coarser_paths(const Problem& problem, const PrecisionPath& path) {
  Readings readings(problem, path);
  const PrecisionPath approximate = parse_precision("fa2", Format::bf16);
  const auto functions = [&](PrecisionPath& p) {
    p.exp_error = std::max(p.exp_error, approximate.exp_error);
    p.log_error = std::max(p.log_error, approximate.log_error);
    p.tanh_error = std::max(p.tanh_error, approximate.tanh_error);
    p.division_error = std::max(p.division_error, approximate.division_error);
  };
  if (!path.row_sum_of_rounded_p && !path.normalize_before_cast && path.p_format != Format::f32) {
    readings.path("row_sum_of_rounded_p", [](PrecisionPath& p) { p.row_sum_of_rounded_p = true; });
  }
  readings.path("the errors of fast math's functions (those of fa2)", functions);
  std::vector<Format> formats, scores;
  for (const Format format : {Format::f16, Format::bf16, Format::e4m3, Format::e5m2}) {
    if (unit_roundoff(format) > unit_roundoff(path.p_format)) formats.push_back(format);
    const bool coarser = unit_roundoff(format) > unit_roundoff(path.scores_format);
    if (coarser && bytes_of(format) == 2) scores.push_back(format);
  }
  for (const Format format : formats) {
    readings.path(fmt::format("p_format={}", name_of(format)),
                  [&](PrecisionPath& p) { p.p_format = format; });
    readings.path(fmt::format("p_format={}, tensor_step=8 and the errors of fa2", name_of(format)),
                  [&](PrecisionPath& p) {
                    p.p_format = format;
                    p.tensor_step = 8;
                    functions(p);
                  });
  }
  for (const Format format : scores) {
    readings.path(fmt::format("scores_format={}", name_of(format)),
                  [&](PrecisionPath& p) { p.scores_format = format; });
    if (unit_roundoff(format) <= unit_roundoff(path.p_format)) continue;
    readings.path(fmt::format("scores_format={} p_format={}", name_of(format), name_of(format)),
                  [&](PrecisionPath& p) { p.scores_format = p.p_format = format; });
  }
  return readings.take();
}

}  // namespace attest
