// measure: how far a subject's numbers lie from the truth, over a grid of lengths, widths, formats
// and fills.
#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>

#include "reference/text.hpp"
#include "reports/commands/emulation.hpp"
#include "reports/commands/measured_grid.hpp"
#include "reports/commands/standard_streams.hpp"
#include "reports/commands/subjects.hpp"
#include "reports/formats.hpp"
#include "reports/measurement.hpp"
#include "reports/measurement_comparison.hpp"
#include "reports/rendering.hpp"
#include "reports/safetensors.hpp"
#include "reports/say.hpp"

namespace attest {
namespace {

/// Products that the tensor cores of the emulated architecture add at once; 0: it emulates none, or
/// the subject is not emulated.
Index tensor_step_of(const Subject& subject, const std::string& numerics) {
  using emulator::TensorModel;
  std::string ignored;
  const auto model = emulator::parse_numerics(numerics, ignored);
  if (!model || !subject.begin_under) return 0;
  switch (model->tensor) {
    case TensorModel::f32:
      return 0;
    case TensorModel::sm_70:
      return 4;
    case TensorModel::sm_75:
    case TensorModel::sm_80:
    case TensorModel::sm_89:
      return 8;
    case TensorModel::sm_90:
    case TensorModel::sm_100:
    case TensorModel::sm_120:
      return 16;
  }
  return 0;
}

/// What cannot be executed or asked is of one cell, which the user may leave out.
Cell measured_cell(const Subject& subject, const GridCell& cell, Index tensor_step) {
  try {
    return measure_cell(subject, cell.operation, cell.test_case, tensor_step);
  } catch (const Error& error) {
    throw Error(fmt::format("{} (while measuring '{} {}')", error.what(), name_of(cell.operation),
                            print(cell.test_case)));
  }
}

/// Cell by cell over as many threads as there are subjects. The first exception ends it and is
/// passed on.
std::vector<Cell> measured(const std::vector<GridCell>& grid, const std::vector<Subject>& subjects,
                           Index tensor_step) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  std::vector<Cell> cells(grid.size());
  std::atomic<std::size_t> next = 0;
  std::exception_ptr failed;
  std::mutex mutex;
  Progress progress(stderr);  // what is printed is the table, whoever reads it
  std::size_t done = 0;
  const auto show = [&] {
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    progress.update(fmt::format("{} of {} cells, {:.0f} s", done, grid.size(), seconds),
                    static_cast<double>(done) / static_cast<double>(grid.size()));
  };
  show();
  {
    std::vector<std::jthread> threads;
    for (const Subject& subject : subjects) {
      threads.emplace_back([&] {
        for (std::size_t i = 0; (i = next++) < grid.size();) {
          try {
            cells[i] = measured_cell(subject, grid[i], tensor_step);
          } catch (...) {
            const std::lock_guard lock(mutex);
            if (!failed) failed = std::current_exception();
            next = grid.size();
          }
          const std::lock_guard lock(mutex);
          ++done;
          show();
        }
      });
    }
  }
  progress.finish();
  if (failed) std::rethrow_exception(failed);
  return cells;
}

}  // namespace

int measure_errors(const MeasureCommand& options) {
  using Clock = std::chrono::steady_clock;
  if (!options.calls.empty()) throw Error("--call: belongs to --cost; say --case");
  const std::vector<GridCell> grid = measured_grid(options);
  if (grid.empty()) throw Error("measure: the grid has no cells");
  if (!options.json.empty()) require_writable_file(options.json);
  std::optional<Measurement> before;
  if (!options.compare.empty()) before = read_measurement(options.compare);
  SubjectOptions subject = options.subject;
  subject.emulation.schedule = options.schedule;
  subject.emulation = spelled(subject.emulation);
  const auto make_subject = subject_maker(subject);
  std::vector<Subject> subjects;
  for (unsigned i = 0; i < std::min<std::size_t>(options.threads, grid.size()); ++i) {
    subjects.push_back(make_subject());
  }
  say("{}, seed {}, {}: measuring '{}' ({}) in {} cells\n", version_text(), options.seed,
      text_of(subject.emulation), subject.subject, subjects.front().description.numerics,
      grid.size());
  std::fflush(stdout);
  const Index tensor_step = tensor_step_of(subjects.front(), subject.emulation.numerics);
  const auto begin = Clock::now();
  Measurement measurement{.version = std::string(version()),
                          .subject = reference_of(subject.subject),
                          .numerics = subjects.front().description.numerics,
                          .device = subject.device,
                          .emulation = subject.emulation,
                          .seed = options.seed,
                          .cells = measured(grid, subjects, tensor_step)};
  measurement.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  say("{}", measurement_table(measurement, style_of(stdout).columns));
  const MeasurementEnd end = end_of(measurement);
  int exit_code = end.exit_code;
  if (before) {
    const MeasurementComparison comparison = compared(*before, measurement);
    say("\nagainst {} ('{}', {}):\n{}", options.compare, before->subject, before->numerics,
        comparison_text(comparison, measurement, style_of(stdout).columns));
    if (exit_code == 0) exit_code = exit_code_of(comparison);
  }
  say("\n{}\n", end.reason);
  if (!end.replay.empty()) say("{}\n", end.replay);
  if (options.json.empty()) return exit_code;
  return despite_trouble(exit_code,
                         [&] { write_whole(options.json, measurement_json_of(measurement)); });
}

}  // namespace attest
