// Judgement: what the bound says of every element of somebody's answer, and its text, JSON and
// tensors. Knows neither files' names nor where the answer came from.
#pragma once
#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "properties/given.hpp"
#include "properties/row_sample.hpp"
#include "properties/wrong_answers.hpp"
#include "reference/bound/acceptance.hpp"
#include "reports/formats.hpp"

namespace attest {

/// A number that was refused.
struct Refusal {
  std::array<Index, 4> where{};  // (batch, head, row, column)
  double got = 0, low = 0, high = 0;
  double margin = 0;  // how far the bound was used; infinite for what must be met exactly
  double ulps = 0;    // numbers of the format from the nearest accepted one; infinite for NaN
};

inline constexpr std::size_t kWorst = 10;

/// What became of the elements of one tensor; the counts add up to `elements`.
struct JudgedTensor {
  Index elements = 0, accepted = 0, refused = 0;
  Index not_finite = 0;  // of the refused: NaN or infinite
  Index behind = 0;      // not judged: behind a query length
  Index left_out = 0;    // not judged: not in the sample
  Index unpromised = 0;  // not judged: the bound promises nothing there
  // Words of the path that are why; none: values that are not finite, or overflow.
  std::vector<std::string> unpromised_by;
  double margin_max = 0;
  std::array<Index, 4> margin_where{};
  std::vector<double> margin, low, high;  // NaN where not judged
  std::vector<Refusal> worst;             // the largest margins first, at most kWorst
};

/// "nothing is promised for ...": where something is unpromised.
std::string why_unpromised(const JudgedTensor& tensor);

/// Query rows [first, last] of one head with a refused number.
struct RowRange {
  Index batch = 0, head = 0, first = 0, last = 0;
};

/// Of the rows that exist, and of the heads that have any.
struct SampleTaken {
  Index rows = 0, of_rows = 0, heads = 0, of_heads = 0;
  std::uint64_t seed = 0;
};

struct Judgement {
  Problem problem;
  PrecisionPath path;
  std::optional<JudgedTensor> o, lse;               // what was given
  std::array<Index, kStrengthNames.size()> rows{};  // by the strength that judged their o
  std::vector<RowRange> refused_rows;               // in order
  Trials trials;                                    // which wrong answers would have been refused
  std::vector<std::string> loose;     // words of the path without which a blind tensor could tell
  bool block_would_tell = false;      // so could it if the path said kv_block=
  std::optional<SampleTaken> sample;  // nothing: every row was judged
  std::vector<std::string> remarks;   // what the refusals may mean, and what was said in vain

  Index judged() const;
  Index refused() const;
};

/// Every element against what is accepted there; of a sample that is not the whole, its rows.
Judgement judge(const Problem& problem, const PrecisionPath& path, const Acceptance& accepted,
                const Given& given, const RowSample& sample = {});
/// What the same values and path could have told of wrong answers: trials, loose, unpromised_by.
void look_at_power(Judgement& judgement, const Values& values, const Acceptance& accepted,
                   const Given& given);

/// 1: something was refused. 2: it could not be told: a tensor that was given could not be judged
/// at all, or zeros in place of O would be accepted, or none of the wrong answers that would change
/// a tensor would be refused by it. 0: all that was judged was accepted.
Conclusion conclusion_of(const Judgement& judgement);

std::string text_of(const Judgement& judgement);
/// README.md has the schema.
std::string json_of(const Judgement& judgement, std::string_view version, std::string_view file);
/// o_margin, o_low, o_high and the same of lse, in F64.
void write_judgement_file(const std::filesystem::path& path, const Judgement& judgement);

}  // namespace attest
