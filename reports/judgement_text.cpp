// A Judgement as text for people, as JSON, and as tensors.
#include <fmt/format.h>

#include <cmath>

#include "reference/precision_text.hpp"
#include "reference/text.hpp"
#include "reports/judgement.hpp"
#include "reports/precision_json.hpp"
#include "reports/rendering.hpp"
#include "reports/safetensors.hpp"
#include "reports/strict_json.hpp"

namespace attest {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kSchema = 1;
constexpr int kColumns = 100;
constexpr std::size_t kRangesShown = 12;  // a line or two; the JSON has all

using Each = std::pair<std::string_view, const std::optional<JudgedTensor>*>;
std::array<Each, 2> tensors_of(const Judgement& judgement) {
  return {Each{"o", &judgement.o}, Each{"lse", &judgement.lse}};
}

std::string counts_text(std::string_view name, const JudgedTensor& tensor) {
  std::string text = fmt::format("{:<5}{} elements: {} accepted, {} refused", name, tensor.elements,
                                 tensor.accepted, tensor.refused);
  if (tensor.not_finite > 0)
    text += fmt::format(" ({} of them NaN or infinite)", tensor.not_finite);
  if (tensor.behind > 0) text += fmt::format(", {} behind a query length", tensor.behind);
  if (tensor.left_out > 0) text += fmt::format(", {} not in the sample", tensor.left_out);
  if (tensor.unpromised > 0) {
    text += fmt::format(", {} not judged because {}", tensor.unpromised, why_unpromised(tensor));
  }
  if (tensor.accepted + tensor.refused > 0) {
    text += fmt::format("; margin at most {} at {}", short_number(tensor.margin_max),
                        place_of(tensor.margin_where));
  }
  return text + "\n";
}

std::string sample_text(const std::optional<SampleTaken>& sample) {
  if (!sample) return {};
  return fmt::format("a sample is judged: {} of {} rows, of {} of {} heads, seed {}\n",
                     sample->rows, sample->of_rows, sample->heads, sample->of_heads, sample->seed);
}

Json json_of(const std::optional<SampleTaken>& sample) {
  if (!sample) return {};
  return {{"rows", sample->rows},
          {"of_rows", sample->of_rows},
          {"heads", sample->heads},
          {"of_heads", sample->of_heads},
          {"seed", sample->seed}};
}

std::string strengths_text(const Judgement& judgement) {
  std::vector<std::string> pieces;
  for (std::size_t n = 0; n < kStrengthNames.size(); ++n) {
    if (judgement.rows[n] > 0) {
      pieces.push_back(fmt::format("{} {}", kStrengthNames[n], judgement.rows[n]));
    }
  }
  return fmt::format("rows judged by the bound: {}\n",
                     pieces.empty() ? "none" : joined(pieces, ", "));
}

/// "told from the right answer", ...: what became of the wrong answers, in words.
constexpr std::pair<Fate, std::string_view> kFates[] = {
    {Fate::refused, "would be refused"},
    {Fate::accepted, "would be accepted"},
    {Fate::same, "change nothing here"},
};
constexpr std::array<std::string_view, 3> kFateNames = {"refused", "accepted", "same"};

std::string power_text(const Trials& trials) {
  std::string text;
  for (const auto& [fate, words] : kFates) {
    std::vector<std::string> names;
    for (const Trial& trial : trials.tried) {
      if (trial.fate == fate) names.emplace_back(trial.wrong_answer);
    }
    if (!names.empty()) text += wrapped(fmt::format("{:<20}", words), names, kColumns);
  }
  return text.empty() ? "" : "of the wrong answers of `attest list wrong_answers`\n" + text;
}

std::string rows_text(const Judgement& judgement) {
  std::string text;
  std::size_t shown = 0;
  for (const RowRange& range : judgement.refused_rows) {
    if (++shown > kRangesShown) {
      return text + fmt::format("  and {} more ranges of rows\n",
                                judgement.refused_rows.size() - kRangesShown);
    }
    text += fmt::format("  batch {}, head {}, {}\n", range.batch, range.head,
                        range.first == range.last
                            ? fmt::format("row {}", range.first)
                            : fmt::format("rows {} to {}", range.first, range.last));
  }
  return text;
}

std::string worst_text(std::string_view name, const std::vector<Refusal>& worst) {
  std::string text = fmt::format("  {:<6}{:<22}{:>16}  {:<36}{:>10}{:>12}\n", "worst",
                                 "[batch,head,row,col]", "got", "accepted", "margin", "ulps off");
  for (const Refusal& each : worst) {
    const auto& at = each.where;
    const std::string range = each.low == each.high
                                  ? fmt::format("{:.9g}", each.low)
                                  : fmt::format("{:.9g} to {:.9g}", each.low, each.high);
    text += fmt::format("  {:<6}{:<22}{:>16.9g}  {:<36}{:>10}{:>12}\n", name,
                        fmt::format("[{},{},{},{}]", at[0], at[1], at[2], at[3]), each.got, range,
                        short_number(each.margin), each.ulps);
  }
  return text;
}

Json json_of(const Refusal& refusal) {
  return {{"where", refusal.where},
          {"got", number_of(refusal.got)},
          {"low", number_of(refusal.low)},
          {"high", number_of(refusal.high)},
          {"margin", number_of(refusal.margin)},
          {"ulps", number_of(refusal.ulps)}};
}

Json json_of(const JudgedTensor& tensor) {
  Json worst = Json::array();
  for (const Refusal& refusal : tensor.worst) worst.push_back(json_of(refusal));
  return {{"elements", tensor.elements},
          {"accepted", tensor.accepted},
          {"refused", tensor.refused},
          {"behind_length", tensor.behind},
          {"left_out", tensor.left_out},
          {"unpromised", tensor.unpromised},
          {"unpromised_by", tensor.unpromised_by},
          {"refused_not_finite", tensor.not_finite},
          {"margin_max", number_of(tensor.margin_max)},
          {"margin_where", tensor.margin_where},
          {"worst", worst}};
}

}  // namespace

std::string text_of(const Judgement& judgement) {
  std::string text = sample_text(judgement.sample);
  for (const auto& [name, tensor] : tensors_of(judgement)) {
    if (*tensor) text += counts_text(name, **tensor);
  }
  text += strengths_text(judgement);
  if (judgement.refused() > 0) {
    text += "refused in\n" + rows_text(judgement);
    for (const auto& [name, tensor] : tensors_of(judgement)) {
      if (*tensor && (*tensor)->refused > 0) text += worst_text(name, (*tensor)->worst);
    }
  }
  if (judgement.refused() == 0 && judgement.judged() > 0) text += power_text(judgement.trials);
  for (const std::string& remark : judgement.remarks) text += remark + "\n";
  return text;
}

std::string json_of(const Judgement& judgement, std::string_view version, std::string_view file) {
  const Conclusion conclusion = conclusion_of(judgement);
  Json json = {{"schema", kSchema},
               {"version", version},
               {"file", file},
               {"problem", print(judgement.problem)},
               {"path", print(judgement.path)},
               {"precision", json_of(judgement.path)},
               {"conclusion", {{"exit_code", conclusion.exit_code}, {"reason", conclusion.reason}}},
               {"sample", json_of(judgement.sample)},
               {"tensors", Json::object()},
               {"rows", Json::object()},
               {"refused_rows", Json::array()},
               {"power", Json::array()},
               {"loose", judgement.loose},
               {"remarks", judgement.remarks}};
  for (const auto& [name, tensor] : tensors_of(judgement)) {
    if (*tensor) json["tensors"][std::string(name)] = json_of(**tensor);
  }
  for (std::size_t n = 0; n < kStrengthNames.size(); ++n) {
    json["rows"][std::string(kStrengthNames[n])] = judgement.rows[n];
  }
  for (const RowRange& range : judgement.refused_rows) {
    json["refused_rows"].push_back({{"batch", range.batch},
                                    {"head", range.head},
                                    {"first", range.first},
                                    {"last", range.last}});
  }
  for (const auto& [name, fate, lost] : judgement.trials.tried) {
    json["power"].push_back({{"wrong_answer", name},
                             {"meaning", meaning_of_wrong_answer(name)},
                             {"outcome", kFateNames[static_cast<std::size_t>(fate)]},
                             {"must_be_seen", lost}});
  }
  return text_of(json);
}

void write_judgement_file(const std::filesystem::path& path, const Judgement& judgement) {
  const Problem& p = judgement.problem;
  Safetensors content;
  content.metadata = {
      {"axes", "bhtd"}, {"problem", print(p)}, {"precision", print(judgement.path)}};
  for (const auto& [name, tensor] : tensors_of(judgement)) {
    if (!*tensor) continue;
    std::vector<Index> shape{p.batch, p.num_heads_q, p.seqlen_q};
    if (name == "o") shape.push_back(p.head_dim_v);
    const JudgedTensor& judged = **tensor;
    for (const auto& [what, numbers] :
         {std::pair{"_margin", &judged.margin}, {"_low", &judged.low}, {"_high", &judged.high}}) {
      content.tensors.push_back(
          {std::string(name) + what, Dtype::F64, shape, std::as_bytes(std::span(*numbers))});
    }
  }
  write_whole(path, print_safetensors(content));
}

}  // namespace attest
