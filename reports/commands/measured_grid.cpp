// A cell is written as a case line and parsed, so that the grid can ask for nothing that a line
// could not.
#include "reports/commands/measured_grid.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "properties/ask.hpp"
#include "properties/fills.hpp"
#include "reference/names.hpp"
#include "reference/text.hpp"

namespace attest {
namespace {

// Decode: eight query heads over two KV heads, as models that are served have them.
constexpr std::uint64_t kDecodeHeads = 8, kDecodeKvHeads = 2;

std::uint64_t extent_of(const std::string& word, const char* option) {
  constexpr std::uint64_t kLargest = std::uint64_t{1} << 20;
  if (const std::string problem = count_error(word); !problem.empty()) {
    throw Error(fmt::format("{}: {}", option, problem));
  }
  const std::uint64_t extent = std::stoull(word);
  if (extent < 1 || extent > kLargest) {
    throw Error(fmt::format("{}: '{}' is not between 1 and {}", option, word, kLargest));
  }
  return extent;
}

void require_known(const std::vector<std::string>& words, const char* option,
                   std::span<const std::string_view> known) {
  for (const std::string& word : words) {
    if (std::ranges::find(known, word) != known.end()) continue;
    const std::string near = nearest(word, known);
    throw Error(fmt::format("{}: '{}' is unknown; {}", option, word,
                            near.empty() ? fmt::format("known are {}", fmt::join(known, ", "))
                                         : fmt::format("did you mean '{}'?", near)));
  }
}

std::optional<Operation> operation_named(const std::string& word) {
  if (word.empty()) return std::nullopt;
  for (const Operation operation : {Operation::prefill, Operation::decode}) {
    if (name_of(operation) == word) return operation;
  }
  throw Error(fmt::format("--operation: '{}' is not measured; say prefill or decode", word));
}

/// Extents with about `rows` query rows: the last of a sequence, of as many heads as that takes, or
/// one of each of several sequences.
std::string extents(Operation operation, std::uint64_t rows, std::uint64_t length,
                    std::uint64_t width) {
  if (operation == Operation::decode) {
    const std::uint64_t batch = (rows + kDecodeHeads - 1) / kDecodeHeads;
    return fmt::format("q={}x{}x1x{} kv={}x{}x{}", batch, kDecodeHeads, width, kDecodeKvHeads,
                       length, width);
  }
  const std::uint64_t queries = std::min(rows, length), heads = rows / queries;
  return fmt::format("q=1x{}x{}x{} kv={}x{}x{}", heads, queries, width, heads, length, width);
}

/// The user wrote only a part of the line, so that an error has to show all of it.
Case cell_case(const std::string& line) {
  try {
    return parse_case(line);
  } catch (const Error& error) {
    throw Error(fmt::format("{} (the cell is '{}')", error.what(), line));
  }
}

/// A case line, or "decode CASE-LINE".
GridCell own_cell(const MeasureCommand& options, const std::string& line) {
  const std::size_t blank = std::min(line.find(' '), line.size());
  std::string operation = options.operation, rest = line;
  if (line.substr(0, blank).find('=') == std::string::npos) {
    operation = line.substr(0, blank);
    rest = line.substr(blank);
  }
  const Case test_case = parse_case(rest);
  return {operation_named(operation).value_or(attention_for(test_case.problem)), test_case};
}

}  // namespace

std::vector<GridCell> measured_grid(const MeasureCommand& options) {
  std::vector<std::string_view> fill_names;
  for (const Fill& fill : fills()) fill_names.push_back(fill.name);
  require_known(options.formats, "--formats", format_names());
  require_known(options.outputs, "--outputs", format_names());
  require_known(options.fills, "--fills", fill_names);
  const Operation operation = operation_named(options.operation).value_or(Operation::prefill);
  const std::uint64_t rows = extent_of(fmt::to_string(options.rows), "--rows");
  std::vector<GridCell> cells;
  for (const std::string& line : options.cases) cells.push_back(own_cell(options, line));
  if (!cells.empty()) return cells;
  for (const std::string& width : options.widths) {
    for (const std::string& input : options.formats) {
      const std::vector<std::string> same{input};
      for (const std::string& output : options.outputs.empty() ? same : options.outputs) {
        for (const std::string& fill : options.fills) {
          for (const std::string& length : options.lengths) {
            const std::string line =
                fmt::format("{} in={} out={} fill={} seed={} {}",
                            extents(operation, rows, extent_of(length, "--lengths"),
                                    extent_of(width, "--widths")),
                            input, output, fill, options.seed, options.problem);
            cells.push_back({operation, cell_case(line)});
          }
        }
      }
    }
  }
  return cells;
}

}  // namespace attest
