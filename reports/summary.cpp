// summary.md: a run for people, in the Markdown of pull-request pages.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "fuzz/check.hpp"
#include "reference/text.hpp"
#include "reports/covered_text.hpp"
#include "reports/formats.hpp"
#include "reports/rendering.hpp"
#include "reports/safetensors.hpp"

namespace attest {
namespace {

/// For a table cell or running text: what Markdown or HTML would interpret is escaped.
std::string plain(std::string_view text) {
  std::string out;
  for (const char c : one_line(text)) {
    if (std::string_view("\\`*_|<>[]#").find(c) != std::string_view::npos) out += '\\';
    out += c;
  }
  return out;
}

/// As code, with a fence longer than any run of backticks inside it.
std::string code(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += one_line(line) + "\n";
  std::size_t longest = 0, current = 0;
  for (const char c : text) {
    current = c == '`' ? current + 1 : 0;
    longest = std::max(longest, current);
  }
  const std::string fence(std::max<std::size_t>(3, longest + 1), '`');
  return fmt::format("{}\n{}{}\n", fence, text, fence);
}

std::string models(const Run& run) {
  std::vector<std::string> counts;
  for (const auto& [model, cases] : run.models)
    counts.push_back(fmt::format("{} {}", plain(model), cases));
  return counts.empty() ? "" : fmt::format("Cases per model: {}.\n", joined(counts, ", "));
}

std::string asked_for(const Run& run) {
  if (run.where.empty()) return {};
  return fmt::format("Only problems were asked for that are: {}. Nothing is said of others.\n",
                     plain(run.where));
}

std::string headline(const Run& run) {
  constexpr std::string_view kWords[] = {"holds", "VIOLATED", "could not tell"};
  const Conclusion conclusion = conclusion_of(run);
  return fmt::format(
      "# attest: {}\n\nExit code {}: {}.\n\n"
      "Subject {}, numerics {}, device {}, seed {}, version {}, {} cases in {:.1f} s.\n"
      "Emulator: {}.\n{}{}",
      kWords[conclusion.exit_code], conclusion.exit_code, plain(conclusion.reason),
      plain(run.subject), plain(run.numerics), plain(run.device), run.seed, plain(run.version),
      run.cases(), run.seconds, plain(text_of(run.emulation)), models(run), asked_for(run));
}

std::string properties(const Run& run) {
  std::string out =
      "\n## Properties\n\n"
      "| property | standing | cases | held | wrong | declined | vacuous | largest margin | where "
      "|\n"
      "| --- | --- | --: | --: | --: | --: | --: | --: | --- |\n";
  for (const PropertyTally& tally : run.tallies) {
    const bool met = tally.held > 0 && tally.margin_max > 0;
    out += fmt::format("| {} | {} | {} | {} | {} | {} | {} | {} | {} |\n", plain(tally.property),
                       word_of(standing_of(tally)), tally.cases, tally.held, wrong_of(tally),
                       tally.declined, tally.vacuous,
                       tally.held > 0 ? short_number(tally.margin_max) : "",
                       met ? plain(print(tally.margin_case)) : "");
  }
  return out + "\nA margin is error / bound; 1 is the most that is allowed.\n";
}

std::string findings(const Run& run) {
  std::string out;
  for (const Finding& finding : run.findings) {
    const Verdict& verdict = finding.verdict;
    out += fmt::format("\n### {}: {}\n\n{}\n\n", plain(finding.property), word_of(verdict.outcome),
                       plain(verdict.why));
    if (verdict.outcome != Outcome::faulted) {  // a fault left no number to judge
      out += fmt::format("Error {}, bound {}, margin {}, at {}.\n\n", short_number(verdict.error),
                         short_number(verdict.bound), short_number(verdict.margin),
                         place_of(verdict.where));
    }
    if (finding.setting) {
      out += fmt::format("Under numerics {}, schedule {}.\n\n", plain(finding.setting->numerics),
                         finding.setting->schedule);
    }
    out += code({print(finding.shrunk), replay_line(run, finding)});
  }
  return out.empty() ? out : "\n## Findings\n" + out;
}

std::string declines(const Run& run) {
  std::string rows;
  for (const PropertyTally& tally : run.tallies) {
    for (const auto& [why, cases] : tally.declines) {
      rows += fmt::format("| {} | {} | {} |\n", plain(tally.property), plain(why), cases);
    }
  }
  if (rows.empty()) return {};
  return "\n## What the subject declined\n\n"
         "| property | declined because | times |\n| --- | --- | --: |\n" +
         rows;
}

std::string power_table(const Run& run) {
  if (run.power.empty()) return {};
  std::string out =
      "A wrong answer is told when at least one case's bound would have refused it.\n\n"
      "| wrong answer | tried in | told in |\n| --- | --: | --: |\n";
  for (const auto& [name, tally] : run.power) {
    out += fmt::format("| {} | {} | {}{} |\n", plain(name), tally.cases, tally.refused,
                       tally.cases > 0 && tally.refused == 0 ? " **blind**" : "");
  }
  return out + "\n";
}

std::string power(const Run& run) {
  std::string out = "\n## What this run could tell\n\n" + power_table(run);
  const std::vector<std::string> untried = split_power(run).untried;
  return out + (untried.empty() ? "Every wrong answer was tried.\n"
                                : fmt::format("Not tried: {}.\n", plain(joined(untried, ", "))));
}

std::string features(const Run& run) {
  std::string out = "\n## What the cases had\n\n";
  for (const auto& [name, count] : run.features) {
    out += fmt::format("- {}: {}\n", plain(name), count);
  }
  const std::vector<std::string> absent = absent_features(run);
  if (!run.features.empty()) out += '\n';
  return out + (absent.empty() ? "Every known feature was there.\n"
                               : fmt::format("No case had: {}.\n", plain(joined(absent, ", "))));
}

std::string sight(const Run& run) {
  if (run.sight.empty()) return {};
  std::string out =
      "\n## What the bounds could have told\n\n"
      "A case is blind when no wrong answer but zeros would have been refused in O, and sharp when "
      "at least half would have been; unbounded, when nothing is promised of most numbers.\n\n"
      "| cases | answered | unbounded | blind | sharp |\n| --- | --: | --: | --: | --: |\n";
  for (const auto& [stratum, tally] : run.sight) {
    out += fmt::format("| {} | {} | {} | {} | {} |\n", plain(stratum), tally.answered,
                       tally.unbounded, tally.blind, tally.sharp);
  }
  return out;
}

std::string widest(const Run& run) {
  if (run.widest.empty()) return {};
  std::string out =
      "\n## The widest that was declared\n\n| number | size | where |\n| --- | --: | --- |\n";
  for (const auto& [name, declared] : run.widest) {
    out += fmt::format("| {} | {} | {} |\n", plain(name), short_number(declared.size),
                       plain(print(PropertyCase{declared.property, declared.test_case, {}})));
  }
  return out;
}

std::string unreproduced(const Run& run) {
  if (run.unreproduced.empty()) return {};
  std::string out = "\n## What failed once and not again\n\n";
  for (const Unreproduced& once : run.unreproduced) {
    out += fmt::format("{}\n\n", plain(once.what));
    out += code({print(PropertyCase{once.property, once.test_case, once.setting})});
  }
  return out;
}

std::string list_of(const std::vector<std::string>& lines) {
  std::string out;
  for (const std::string& line : lines) out += fmt::format("- {}\n", plain(line));
  return out;
}

std::string covered(const Run& run) {
  if (run.covered.empty()) return {};
  std::string out = "\n## What was drawn of what the subject accepts\n\n" + list_of(drawn_of(run));
  out += fmt::format("\nPairs of features: {}.\n", plain(joined(pairs_drawn_of(run), ", ")));
  const auto values = undrawn_of(run, std::numeric_limits<std::size_t>::max());
  if (!values.empty()) out += "\nAccepted, but in no case:\n\n" + list_of(values);
  for (const auto& [operation, tally] : run.covered) {
    if (tally.unmet_pairs.empty()) continue;
    out += fmt::format(
        "\n<details><summary>Pairs that no case of {} had</summary>\n\n{}\n</details>\n",
        name_of(operation), list_of(tally.unmet_pairs));
  }
  return out;
}

std::string counters(const Run& run) {
  if (!has_counters(run.counters)) return {};
  std::string rows;
  for (const CounterColumn& column : kCounterColumns) {
    if (const std::int64_t count = run.counters.*column.value; count != 0)
      rows += fmt::format("| {} | {} |\n", plain(column.name), count);
  }
  return "\n## What the emulator counted\n\n| over all cases | |\n| --- | --: |\n" + rows;
}

}  // namespace

std::string summary_of(const Run& run) {
  return headline(run) + findings(run) + unreproduced(run) + properties(run) + declines(run) +
         power(run) + sight(run) + widest(run) + covered(run) + features(run) + counters(run);
}

void write_summary(const std::filesystem::path& path, const Run& run) {
  write_whole(path, summary_of(run));
}

}  // namespace attest
