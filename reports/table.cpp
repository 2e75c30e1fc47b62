// The table at the end of a run on a terminal: a line per property, then what was found, then what
// the run could tell. Columns adapt to the width; nothing but the last column is ever cut.
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
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

std::string cut(std::string_view text, std::size_t columns) {
  if (text.size() <= columns) return std::string(text);
  return columns < 4 ? std::string() : std::string(text.substr(0, columns - 3)) + "...";
}

/// Words of `text` over as many lines as it takes, each after the first indented.
std::string wrapped(const std::string& lead, const std::vector<std::string>& words, int columns) {
  std::string out = lead;
  std::size_t used = lead.size();
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string word = words[i] + (i + 1 < words.size() ? "," : "");
    if (i > 0 && used + 1 + word.size() > static_cast<std::size_t>(columns)) {
      out += "\n" + std::string(lead.size(), ' ');
      used = lead.size();
    }
    out += " " + word;
    used += 1 + word.size();
  }
  return out + "\n";
}

std::string row_of(const PropertyTally& tally, std::size_t name_columns, const TableStyle& style) {
  const Standing standing = standing_of(tally);
  const std::string numbers =
      fmt::format("{:>8} {:>8} {:>8} {:>8}  {:>8}", tally.cases, tally.held, tally.declined,
                  tally.vacuous, tally.held > 0 ? short_number(tally.margin_max) : "");
  std::string row = fmt::format(
      "{:<{}} {} {}", tally.property, name_columns,
      painted(fmt::format("{:<8}", word_of(standing)), colour_of(standing), style), numbers);
  const std::size_t used = name_columns + 10 + numbers.size() + 2;
  const auto columns = static_cast<std::size_t>(style.columns);
  if (tally.held > 0 && !(tally.margin_case == Case{}) && used < columns) {
    row += "  " + cut(print(tally.margin_case), columns - used);
  }
  return row.substr(0, row.find_last_not_of(' ') + 1) + "\n";
}

std::string findings(const Run& run, const TableStyle& style) {
  std::string out;
  for (const Finding& finding : run.findings) {
    const Verdict& verdict = finding.verdict;
    out += fmt::format("\n{} {}: {}\n", painted(word_of(verdict.outcome), "31;1", style),
                       finding.property, verdict.why);
    out += fmt::format("  error {}, bound {}, margin {} at {}\n", short_number(verdict.error),
                       short_number(verdict.bound), short_number(verdict.margin),
                       place_of(verdict.where));
    out +=
        fmt::format("  case   {}\n  replay {}\n", print(finding.shrunk), replay_line(run, finding));
  }
  return out;
}

std::string power(const Run& run, const TableStyle& style) {
  const PowerSplit split = split_power(run);
  std::string out;
  if (!split.told.empty()) out += "\n" + wrapped("could tell:", split.told, style.columns);
  if (!split.blind.empty()) {
    out += painted(wrapped("blind to:  ", split.blind, style.columns), "33", style);
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
  std::size_t name_columns = 8;
  for (const PropertyTally& tally : run.tallies) {
    name_columns = std::max(name_columns, tally.property.size());
  }
  std::string out =
      fmt::format("{:<{}} {:<8} {:>8} {:>8} {:>8} {:>8}  {:>8}{}\n", "property", name_columns,
                  "standing", "cases", "held", "declined", "vacuous", "margin",
                  style.columns >= 80 ? "  where the largest margin is" : "");
  for (const PropertyTally& tally : run.tallies) out += row_of(tally, name_columns, style);
  return out + findings(run, style) + power(run, style);
}

void print_table(std::FILE* out, const Run& run, const TableStyle& style) {
  const std::string table = table_of(run, style);
  std::fwrite(table.data(), 1, table.size(), out);
  std::fflush(out);
}

}  // namespace attest
