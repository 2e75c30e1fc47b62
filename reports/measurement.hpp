// A measurement: how far a subject's numbers lie from the truth, cell by cell of a grid, as values;
// how a cell is measured, and how measurements become text and JSON and are compared. Knows neither
// command lines nor how subjects are started.
#pragma once
#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/run.hpp"
#include "reference/bound/acceptance.hpp"
#include "reference/model/attribution.hpp"
#include "reference/oracle/certified.hpp"
#include "reference/statistics/summary.hpp"
#include "reference/verdict.hpp"

namespace attest {

/// How much of a bound was used: error_of() / radius, over rows that this bound judges.
struct BoundUse {
  std::uint64_t elements = 0;
  double median = 0, largest = 0;
  Extent4 where{};  // of the largest: (batch, head, row, column)
  bool operator==(const BoundUse&) const = default;
};
using BoundUses = std::array<BoundUse, kStrengthNames.size()>;  // by Strength

/// What is kept of each row of O, so that two measurements can be compared row by row. Units are
/// those of ErrorSummary: a row's ulp.
struct RowFigures {
  std::vector<double> square, inward;  // means over the row: of the squared and the signed error
  std::vector<double> margin;  // largest error_of() / radius of the strongest bound that applies
  bool operator==(const RowFigures&) const = default;
};

/// One operation on one Case. Of a cell whose verdict neither holds nor is violated there are no
/// figures.
struct Cell {
  Operation operation = Operation::prefill;
  Case test_case;
  Verdict verdict;      // of every number, by the strongest bound that applies
  ErrorSummary o, lse;  // lse as if it were an O with one column, in f32
  Quantiles o_to_rms;   // |error| of O over the root mean square of its row's truth
  BoundUses o_bounds, lse_bounds;
  std::array<Index, kTierNames.size()> tiers{};  // rows by what their truth was computed in
  std::optional<Attribution> stages;  // of a model of the declared path, on a part of the rows
  RowFigures rows;
};

struct Measurement {
  std::string version, subject, numerics, device;
  EmulationOptions emulation;
  std::uint64_t seed = 0;
  double seconds = 0;
  std::vector<Cell> cells;
};

/// Asks the subject once and measures what it answers. `operation` is prefill or decode,
/// `tensor_step` the products that the tensor cores it runs on add at once; 0: unknown, and nothing
/// is said of how likely its errors are where it uses any.
Cell measure_cell(const Subject& subject, Operation operation, const Case& test_case,
                  Index tensor_step = 0);

/// The stages of a part of the Problem that does not cost too much; nothing where there is none.
std::optional<Attribution> attribution_of(Problem problem, Values values, const PrecisionPath& path,
                                          Index tensor_step);

/// 1: a number was refused, the subject faulted, or its errors raised an alarm. 0: something was
/// measured, and nothing is wrong. 2: nothing was measured.
struct MeasurementEnd {
  int exit_code = 2;
  std::string reason;  // one sentence
  std::string replay;  // the command that shows what is wrong; empty: nothing is
};
MeasurementEnd end_of(const Measurement& measurement);

/// Tables of `columns` columns.
std::string measurement_table(const Measurement& measurement, int columns);

/// measurement.json; schema 1 is documented in README.md. read(write(x)) == x.
std::string measurement_json_of(const Measurement& measurement);
Measurement measurement_of_json(std::string_view text, std::string_view file_name);
Measurement read_measurement(const std::filesystem::path& path);

}  // namespace attest
