// summary.md: a run for people, in the Markdown of pull-request pages.
#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "reference/text.hpp"
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
  return headline(run) + findings(run) + properties(run) + declines(run) + power(run) +
         features(run) + counters(run);
}

void write_summary(const std::filesystem::path& path, const Run& run) {
  write_whole(path, summary_of(run));
}

}  // namespace attest
