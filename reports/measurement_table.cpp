// A measurement as tables: one of O, one of how much of the bounds it used, one of LSE. Columns
// that say the same in every cell are said once, above.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "reference/formats.hpp"
#include "reference/text.hpp"
#include "reports/measurement.hpp"
#include "reports/rendering.hpp"

namespace attest {
namespace {

using Row = std::vector<std::string>;

/// What a cell is, in columns. The number is that of the cell, from 1.
constexpr std::array<const char*, 6> kLabels{"cell", "call", "length", "width", "formats", "fill"};

Row label_of(const Cell& cell, std::size_t number) {
  const Problem& p = cell.test_case.problem;
  const std::string width = p.head_dim == p.head_dim_v
                                ? fmt::to_string(p.head_dim)
                                : fmt::format("{}/{}", p.head_dim, p.head_dim_v);
  std::string formats(name_of(p.input));
  if (p.cache) formats += fmt::format("/{}", name_of(*p.cache));
  if (p.output != p.input) formats += fmt::format(">{}", name_of(p.output));
  return {fmt::to_string(number),
          std::string(name_of(cell.operation)),
          fmt::to_string(p.seqlen_kv),
          width,
          formats,
          cell.test_case.fill};
}

std::vector<std::size_t> widths_of(const std::vector<Row>& rows) {
  std::vector<std::size_t> widths(rows.front().size());
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  return widths;
}

/// Rows with the same number of words; the first is the head. Labels stand left, numbers right, a
/// cell's number too. Where all do not fit, the number is label enough.
std::string table_of(std::vector<Row> rows, std::size_t labels, int columns) {
  const auto room = static_cast<std::size_t>(columns);
  const auto total = [&rows](std::size_t gap) {
    std::size_t sum = 0;
    for (const std::size_t width : widths_of(rows)) sum += width + gap;
    return sum - gap;
  };
  if (total(1) > room) {
    for (Row& row : rows) row.erase(row.begin() + 1, row.begin() + static_cast<int>(labels));
    labels = 1;
  }
  const std::size_t gap = total(2) > room ? 1 : 2;
  const std::vector<std::size_t> widths = widths_of(rows);
  std::string text;
  for (const Row& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i > 0) line.append(gap, ' ');
      line += i > 0 && i < labels ? fmt::format("{:<{}}", row[i], widths[i])
                                  : fmt::format("{:>{}}", row[i], widths[i]);
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

bool has_figures(const Cell& cell) {
  return cell.o.elements > 0;
}

class Tables {
 public:
  Tables(const Measurement& measurement, int columns)
      : measurement_(measurement), columns_(columns) {
    std::array<std::map<std::string, int>, kLabels.size()> words;
    for (std::size_t i = 0; i < cells().size(); ++i) {
      const Row label = label_of(cells()[i], i + 1);
      for (std::size_t column = 0; column < label.size(); ++column) ++words[column][label[column]];
    }
    for (std::size_t column = 0; column < words.size(); ++column) {
      shown_[column] = column == 0 || words[column].size() != 1;
      if (shown_[column]) continue;
      above_ += fmt::format("{}{} {}", above_.empty() ? "all cells: " : ", ", kLabels[column],
                            words[column].begin()->first);
    }
  }

  std::string above() const { return above_.empty() ? "" : above_ + "\n"; }

  /// `figures` are those of a cell that has some.
  template <class Figures>
  std::string table(const std::string& title, const Row& head, Figures figures,
                    bool (*has)(const Cell&) = has_figures) const {
    std::vector<Row> rows{shown({kLabels.begin(), kLabels.end()})};
    const std::size_t labels = rows.front().size();
    rows.front().insert(rows.front().end(), head.begin(), head.end());
    for (std::size_t i = 0; i < cells().size(); ++i) {
      if (!has(cells()[i])) continue;
      Row& row = rows.emplace_back(shown(label_of(cells()[i], i + 1)));
      const Row numbers = figures(cells()[i]);
      row.insert(row.end(), numbers.begin(), numbers.end());
    }
    if (rows.size() == 1) return {};
    return "\n" + title + "\n" + table_of(rows, labels, columns_);
  }

 private:
  const std::vector<Cell>& cells() const { return measurement_.cells; }

  Row shown(const Row& label) const {
    Row row;
    for (std::size_t i = 0; i < label.size(); ++i) {
      if (shown_[i]) row.push_back(label[i]);
    }
    return row;
  }

  const Measurement& measurement_;
  int columns_;
  std::array<bool, kLabels.size()> shown_{};
  std::string above_;
};

std::string bias_of(const RowMean& mean) {
  return fmt::format("{:+.2g}", mean.mean);
}

std::string percent(Index part, Index whole) {
  return whole == 0
             ? "-"
             : fmt::format("{:.1f}", 100 * static_cast<double>(part) / static_cast<double>(whole));
}

Row errors_row(const ErrorSummary& errors) {
  return {short_number(errors.ulp.median),
          short_number(errors.ulp.ninth_decile),
          short_number(errors.ulp.last_percentile),
          short_number(errors.ulp.largest),
          bias_of(errors.inward),
          fmt::format("{:.1g}", errors.inward.error),
          percent(errors.correct, errors.elements)};
}

/// Which bounds judged a row of any cell.
std::vector<std::size_t> strengths_of(const Measurement& measurement) {
  std::vector<std::size_t> strengths;
  for (std::size_t i = 0; i < kStrengthNames.size(); ++i) {
    const auto judged = [i](const Cell& cell) { return cell.o_bounds[i].elements > 0; };
    if (std::ranges::any_of(measurement.cells, judged)) strengths.push_back(i);
  }
  return strengths;
}

std::string uses_table(const Tables& tables, const Measurement& measurement) {
  const std::vector<std::size_t> strengths = strengths_of(measurement);
  Row head{"50%", "100%"};
  for (const std::size_t i : strengths) {
    head.emplace_back(kStrengthNames[i]);
    head.emplace_back("largest");
  }
  return tables.table(
      "O: |error| / RMS of its row; error / bound, median and largest, for each bound that applies",
      head, [&strengths](const Cell& cell) {
        Row row{short_number(cell.o_to_rms.median), short_number(cell.o_to_rms.largest)};
        for (const std::size_t i : strengths) {
          const BoundUse& use = cell.o_bounds[i];
          row.push_back(use.elements == 0 ? "-" : short_number(use.median));
          row.push_back(use.elements == 0 ? "-" : short_number(use.largest));
        }
        return row;
      });
}

Row lse_row(const Cell& cell) {
  const ErrorSummary& errors = cell.lse;
  return {short_number(errors.ulp.median),          short_number(errors.ulp.last_percentile),
          short_number(errors.ulp.largest),         bias_of(errors.offset),
          percent(errors.correct, errors.elements), short_number(errors.margin)};
}

bool has_z(const Cell& cell) {
  return cell.o.z.has_value();
}

Row z_row(const Cell& cell) {
  const ZSummary& z = *cell.o.z;
  Row row;
  for (const Standardised& along : {z.inward, z.offset, z.sharper, z.others}) {
    row.push_back(fmt::format("{:+.1f}", along.total));
  }
  row.push_back(fmt::format("{:.1f}", z.largest));
  row.push_back(fmt::format("{:.2f}", z.chi_square));
  row.push_back(
      fmt::format("{:.1g}", z.least_bias[static_cast<std::size_t>(statistics::Bias::weights)]));
  row.push_back(
      fmt::format("{:.1g}", z.least_bias[static_cast<std::size_t>(statistics::Bias::scale)]));
  return row;
}

bool has_stages(const Cell& cell) {
  return cell.stages.has_value() && has_figures(cell);
}

/// Shares in percent, and the model's error over the measured one.
Row stages_row(const Cell& cell) {
  Row row;
  for (const StageError& stage : cell.stages->stages) {
    row.push_back(fmt::format("{:.1f}", 100 * stage.share));
  }
  const double measured =
      2 * unit_roundoff(cell.test_case.problem.output) * std::sqrt(cell.o.square.mean);
  row.push_back(measured > 0 ? fmt::format("{:.2f}", cell.stages->total.rms / measured) : "-");
  return row;
}

/// "1", "3-5": numbers in rising order, neighbours together.
std::vector<std::string> ranges_of(const std::vector<std::size_t>& numbers) {
  std::vector<std::string> ranges;
  for (std::size_t i = 0; i < numbers.size();) {
    std::size_t last = i;
    while (last + 1 < numbers.size() && numbers[last + 1] == numbers[last] + 1) ++last;
    ranges.push_back(last == i ? fmt::to_string(numbers[i])
                               : fmt::format("{}-{}", numbers[i], numbers[last]));
    i = last + 1;
  }
  return ranges;
}

/// What the truth was computed in, where names are explained, and why there is no z.
std::string remarks(const Measurement& measurement, int columns) {
  std::array<Index, kTierNames.size()> rows{};
  std::map<std::string, std::vector<std::size_t>> without;
  std::string text;
  for (std::size_t i = 0; i < measurement.cells.size(); ++i) {
    const Cell& cell = measurement.cells[i];
    if (!has_figures(cell)) continue;
    for (std::size_t tier = 0; tier < rows.size(); ++tier) rows[tier] += cell.tiers[tier];
    if (!cell.o.z) without[one_line(cell.o.uncalibrated)].push_back(i + 1);
    for (const ZAlarm& alarm : cell.o.z ? cell.o.z->alarms : std::vector<ZAlarm>{}) {
      text += fmt::format(
          "cell {}: alarm: z {} is {:.2f}, beyond {:.2f}; a correct kernel has an "
          "alarm in {:.0e} of all cells\n",
          i + 1, one_line(alarm.test), alarm.found, alarm.limit, cell.o.z->false_alarm);
    }
  }
  std::vector<std::string> tiers;
  for (std::size_t tier = 0; tier < rows.size(); ++tier) {
    if (rows[tier] > 0) tiers.push_back(fmt::format("{} in {}", rows[tier], kTierNames[tier]));
  }
  if (!tiers.empty()) {
    text += fmt::format("rows of the truth: {}\n", joined(tiers, ", "));
    text += "bounds, directions, biases, stages and tiers: `attest list` says what they are\n";
  }
  for (const auto& [why, numbers] : without) {
    const std::string line = fmt::format("{}: cells {}", why, joined(ranges_of(numbers), ", "));
    text += wrapped("no z:", words_of(line), columns);
  }
  return text.empty() ? text : "\n" + text;
}

}  // namespace

std::string measurement_table(const Measurement& measurement, int columns) {
  const Tables tables(measurement, columns);
  std::string text = tables.above();
  text += tables.table(
      "O: |error| in ulps; bias away from zero, in ulps of the row's RMS; correctly rounded, %",
      {"50%", "90%", "99%", "100%", "bias", "+-", "right"},
      [](const Cell& cell) { return errors_row(cell.o); });
  text += uses_table(tables, measurement);
  text += tables.table(
      "LSE: |error| in ulps; bias upwards; correctly rounded, %; largest error / bound",
      {"50%", "99%", "100%", "bias", "right", "margin"}, lse_row);
  text += tables.table(
      "z of O along directions (6: alarm), largest, mean square; least bias of P and scale to show",
      {"inward", "offset", "sharper", "others", "z", "z^2", "P", "scale"}, z_row, has_z);
  text += tables.table(
      "a model of the declared path: share of its squared error by stage, %; its error / measured",
      {"scores", "exp", "P cast", "row sum", "P V", "output", "model"}, stages_row, has_stages);
  text += remarks(measurement, columns);
  std::string left_out;
  for (std::size_t i = 0; i < measurement.cells.size(); ++i) {
    const Cell& cell = measurement.cells[i];
    if (cell.verdict.outcome == Outcome::holds) continue;
    left_out += fmt::format("cell {}: {}: {}\n  {}\n", i + 1, word_of(cell.verdict.outcome),
                            one_line(cell.verdict.why), print(cell.test_case));
  }
  return text + (left_out.empty() ? "" : "\n" + left_out);
}

}  // namespace attest
