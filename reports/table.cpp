// The table at the end of a run: a line per property and where its largest margin was met, then
// what was found, then what the run could tell. It fits 80 columns; longer lines are wrapped, never
// cut.
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <vector>

#include "reference/text.hpp"
#include "reports/formats.hpp"
#include "reports/rendering.hpp"

namespace attest {
namespace {

constexpr int kColumnsMin = 60, kColumnsPlain = 100;

std::string painted(std::string_view text, std::string_view colour, const TableStyle& style) {
  if (!style.colour) return std::string(text);
  return fmt::format("\x1b[{}m{}\x1b[0m", colour, text);
}

std::string_view colour_of(Standing standing) {
  switch (standing) {
    case Standing::held:
      return "32";  // green
    case Standing::failed:
      return "31;1";  // bold red
    case Standing::declined:
      return "2";  // dim
    case Standing::unproven:
      return "33";  // yellow
  }
  return "0";
}

/// `words` over as many lines as it takes, each after the first indented below the first word.
std::string wrapped(const std::string& lead, const std::vector<std::string>& words, int columns) {
  std::string out = lead;
  std::size_t used = lead.size();
  for (const std::string& word : words) {
    if (used > lead.size() && used + 1 + word.size() > static_cast<std::size_t>(columns)) {
      out += '\n';
      out.append(lead.size(), ' ');
      used = lead.size();
    }
    out += ' ';
    out += word;
    used += 1 + word.size();
  }
  return out + "\n";
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t stop = std::min(text.find(' ', start), text.size());
    if (stop > start) words.emplace_back(text.substr(start, stop - start));
    start = stop + 1;
  }
  return words;
}

std::vector<std::string> listed(std::vector<std::string> names) {
  for (std::size_t i = 0; i + 1 < names.size(); ++i) names[i] += ",";
  return names;
}

struct Row {
  std::string property;
  std::string_view standing;
  std::array<std::string, 5> numbers;  // cases, held, declined, vacuous, largest margin
};
using Widths = std::array<std::size_t, 5>;

Row row_of(const PropertyTally& tally) {
  return {tally.property,
          word_of(standing_of(tally)),
          {fmt::to_string(tally.cases), fmt::to_string(tally.held), fmt::to_string(tally.declined),
           fmt::to_string(tally.vacuous), tally.held > 0 ? short_number(tally.margin_max) : ""}};
}

std::string line_of(const Row& row, std::size_t name_width, const Widths& widths,
                    std::string_view colour, const TableStyle& style) {
  std::string line = fmt::format("{:<{}}  ", row.property, name_width);
  line += painted(fmt::format("{:<8}", row.standing), colour, style);
  for (std::size_t i = 0; i < widths.size(); ++i) {
    line += fmt::format("  {:>{}}", row.numbers[i], widths[i]);
  }
  return line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
}

// Where the largest margin was met is a line of its own: a case line fits into no column.
std::string place_line(const PropertyTally& tally, const TableStyle& style) {
  if (tally.held == 0 || !(tally.margin_max > 0)) return {};
  const auto& where = tally.margin_where;
  std::vector<std::string> words = words_of(print(tally.margin_case));
  words.insert(words.begin(),
               fmt::format("[{}, {}, {}, {}] of", where[0], where[1], where[2], where[3]));
  return painted(
      wrapped(fmt::format("    {} at", short_number(tally.margin_max)), words, style.columns), "2",
      style);
}

// What was wrong in numbers, and the command that shows it again, which holds the case.
std::string findings(const Run& run, const TableStyle& style) {
  std::string out;
  for (const Finding& finding : run.findings) {
    out +=
        fmt::format("\n{} {}: {}\n  {}\n", painted(word_of(finding.verdict.outcome), "31;1", style),
                    finding.property, one_line(finding.verdict.why), replay_line(run, finding));
  }
  return out;
}

std::string power(const Run& run, const TableStyle& style) {
  const PowerSplit split = split_power(run);
  std::string out;
  if (!split.told.empty()) {
    out += '\n';
    out += wrapped("could tell:", listed(split.told), style.columns);
  }
  if (!split.blind.empty()) {
    out += painted(wrapped("blind to:  ", listed(split.blind), style.columns), "33", style);
  }
  return out;
}

}  // namespace

TableStyle style_of(std::FILE* out) {
  const int descriptor = ::fileno(out);
  if (descriptor < 0 || ::isatty(descriptor) == 0) return {.columns = kColumnsPlain};
  winsize size{};
  const bool known = ::ioctl(descriptor, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  const char* no_colour = std::getenv("NO_COLOR");
  return {.columns = known ? std::max<int>(kColumnsMin, size.ws_col) : kColumnsPlain,
          .colour = no_colour == nullptr || *no_colour == '\0'};
}

std::string table_of(const Run& run, const TableStyle& style) {
  const Row head{"property", "standing", {"cases", "held", "declined", "vacuous", "margin"}};
  std::vector<Row> rows{head};
  for (const PropertyTally& tally : run.tallies) rows.push_back(row_of(tally));
  std::size_t name_width = 0;
  Widths widths{};
  for (const Row& row : rows) {
    name_width = std::max(name_width, row.property.size());
    for (std::size_t i = 0; i < widths.size(); ++i) {
      widths[i] = std::max(widths[i], row.numbers[i].size());
    }
  }
  std::string out = line_of(head, name_width, widths, "0", {.columns = style.columns});
  for (std::size_t i = 0; i < run.tallies.size(); ++i) {
    const PropertyTally& tally = run.tallies[i];
    out += line_of(rows[i + 1], name_width, widths, colour_of(standing_of(tally)), style);
    out += place_line(tally, style);
  }
  return out + findings(run, style) + power(run, style);
}

void print_table(std::FILE* out, const Run& run, const TableStyle& style) {
  const std::string table = table_of(run, style);
  std::fwrite(table.data(), 1, table.size(), out);
  std::fflush(out);
}

}  // namespace attest
