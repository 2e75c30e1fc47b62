// Steering: what ran decides what is drawn next. Cases that came to the same kernels by the same
// formats share a cell; the cells with the fewest sharp cases are aimed at. A case is sharp when
// its bound would have refused at least half of the wrong answers that were tried on it: only such
// cases can show an error that is small.
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "fuzz/check.hpp"
#include "fuzz/run.hpp"

namespace attest {

/// Into run.cells and run.sight, where `property` is central to an operation.
void count_sight(Run& run, const Property& property, const Case& test_case,
                 const Observation& seen);

/// Compared bit by bit or with one rounding, or by a bound that refuses half of the wrong answers.
bool is_sharp(Operation operation, const Verdict& verdict);

/// The cell that a case came to: "decode mma_decode in=f16 cache=e4m3, whole tiles".
std::string cell_of(Operation operation, const Case& test_case, const Observation& seen);

/// What a case is to be like so that it comes to a cell.
struct Aim {
  std::string cell;
  Operation operation = Operation::prefill;
  Case alike;  // one that came to the same kernels
  Format input = Format::f32, cache = Format::f32;
  bool whole_tiles = false;
};

/// As many aims as there are cells worth one, `count` at most, the poorest first: every format of
/// inputs and cache with all kernels seen. `spent` counts by cell the aimed cases that were not
/// sharp, or came elsewhere.
std::vector<Aim> aims_of(const Run& run, Operation operation,
                         const std::map<std::string, std::uint64_t>& spent, std::size_t count);

/// `drawn`, made to come to the cell and plain enough for a narrow bound; always legal.
Case aimed(const Case& drawn, const Aim& aim);

}  // namespace attest
