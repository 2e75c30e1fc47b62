// The table at the end of a run: a line per property and where its largest margin was met, then
// what the run could tell and what it could not. It fits 80 columns; longer lines are wrapped,
// never cut. Findings are not here: they are printed when they are found.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "reference/text.hpp"
#include "reports/covered_text.hpp"
#include "reports/formats.hpp"
#include "reports/rendering.hpp"

namespace attest {
namespace {

constexpr std::size_t kReasonsShown = 5;  // a line or two
constexpr std::size_t kValuesShown = 6;   // per operation, the same
constexpr std::size_t kStandingWidth = 8;

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

struct Row {
  std::string property;
  std::string_view standing;
  std::array<std::string, 6> numbers;  // judged, held, wrong, declined, vacuous, largest margin
};
using Widths = std::array<std::size_t, 6>;

Row row_of(const PropertyTally& tally) {
  return {tally.property,
          word_of(standing_of(tally)),
          {fmt::to_string(tally.judged()), fmt::to_string(tally.held),
           fmt::to_string(wrong_of(tally)), fmt::to_string(tally.declined),
           fmt::to_string(tally.vacuous), tally.held > 0 ? short_number(tally.margin_max) : ""}};
}

struct TableLayout {
  std::size_t name = 0;
  Widths numbers{};
  std::size_t gap = 2;  // between columns; 1 where the table would be too wide
};

TableLayout layout_of(const std::vector<Row>& rows, const TableStyle& style) {
  TableLayout layout;
  for (const Row& row : rows) {
    layout.name = std::max(layout.name, row.property.size());
    for (std::size_t i = 0; i < layout.numbers.size(); ++i) {
      layout.numbers[i] = std::max(layout.numbers[i], row.numbers[i].size());
    }
  }
  std::size_t total = layout.name + layout.gap + kStandingWidth;
  for (const std::size_t width : layout.numbers) total += layout.gap + width;
  if (total > static_cast<std::size_t>(style.columns)) layout.gap = 1;
  return layout;
}

std::string line_of(const Row& row, const TableLayout& layout, std::string_view colour,
                    const TableStyle& style) {
  std::string line = fmt::format("{:<{}}", row.property, layout.name + layout.gap);
  line += painted(fmt::format("{:<{}}", row.standing, kStandingWidth), colour, style);
  for (std::size_t i = 0; i < layout.numbers.size(); ++i) {
    line += fmt::format("{:>{}}", row.numbers[i], layout.gap + layout.numbers[i]);
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

// The most frequent reasons of all properties together; summary.md has them one by one.
std::vector<std::string> reasons_of(const Run& run) {
  std::map<std::string, std::uint64_t> sums;
  for (const PropertyTally& tally : run.tallies) {
    for (const auto& [why, cases] : tally.declines) sums[one_line(why)] += cases;
  }
  std::vector<std::pair<std::string, std::uint64_t>> order(sums.begin(), sums.end());
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::vector<std::string> reasons;
  for (const auto& [why, cases] : order) {
    if (reasons.size() == kReasonsShown) {
      reasons.push_back(fmt::format("and {} more reasons", order.size() - kReasonsShown));
      break;
    }
    reasons.push_back(fmt::format("{} ({})", why, cases));
  }
  return reasons;
}

/// The widest of every number of the precision paths that were declared, but for those of none.
std::vector<std::string> declarations_of(const Run& run) {
  std::vector<std::string> words;
  for (const auto& [name, widest] : run.widest) {
    if (widest.size > 0) words.push_back(fmt::format("{} {}", name, short_number(widest.size)));
  }
  return words;
}

std::vector<std::string> sharp_of(const Run& run) {
  std::map<Operation, std::array<std::uint64_t, 4>> sums;  // cells, poor ones, cases, sharp ones
  for (const auto& [name, cell] : run.cells) {
    auto& [cells, poor, cases, sharp] = sums[cell.operation];
    ++cells;
    poor += cell.sharp == 0 ? 1 : 0;
    cases += cell.cases;
    sharp += cell.sharp;
  }
  std::vector<std::string> words;
  for (const auto& [operation, sum] : sums) {
    words.push_back(
        fmt::format("{} {} of {} cases{}", name_of(operation), sum[3], sum[2],
                    sum[1] == 0 ? "" : fmt::format(" (none in {} of {} cells)", sum[1], sum[0])));
  }
  return words;
}

// What the run could tell, and every way in which it saw less than a reader may think.
std::string reach(const Run& run, const TableStyle& style) {
  const PowerSplit split = split_power(run);
  std::string out = "\n";
  const auto add = [&](const char* lead, const std::vector<std::string>& names, const char* colour,
                       std::string_view separator) {
    if (names.empty()) return;
    const std::string text = wrapped(lead, words_of(joined(names, separator)), style.columns);
    out += *colour == '\0' ? text : painted(text, colour, style);
  };
  add("could tell: ", split.told, "", ", ");
  add("blind to:   ", split.blind, "33", ", ");
  add("not tried:  ", split.untried, "", ", ");
  add("sharp:      ", sharp_of(run), "", ", ");
  add("widest path:", declarations_of(run), "", ", ");
  add("drawn:      ", drawn_of(run), "", "; ");
  add("pairs drawn:", pairs_drawn_of(run), "", ", ");
  add("not drawn:  ", undrawn_of(run, kValuesShown), "33", "; ");
  add("no case had:", absent_features(run), "", ", ");
  add("declined:   ", reasons_of(run), "", "; ");  // a reason may hold commas
  return out.size() == 1 ? std::string() : out;
}

}  // namespace

std::string table_of(const Run& run, const TableStyle& style) {
  const Row head{
      "property", "standing", {"judged", "held", "wrong", "declined", "vacuous", "margin"}};
  std::vector<Row> rows{head};
  for (const PropertyTally& tally : run.tallies) rows.push_back(row_of(tally));
  const TableLayout layout = layout_of(rows, style);
  std::string out = line_of(head, layout, "0", {.columns = style.columns});
  for (std::size_t i = 0; i < run.tallies.size(); ++i) {
    const PropertyTally& tally = run.tallies[i];
    out += line_of(rows[i + 1], layout, colour_of(standing_of(tally)), style);
    out += place_line(tally, style);
  }
  return out + reach(run, style);
}

void print_table(std::FILE* out, const Run& run, const TableStyle& style) {
  const std::string table = table_of(run, style);
  std::fwrite(table.data(), 1, table.size(), out);
  std::fflush(out);
}

}  // namespace attest
