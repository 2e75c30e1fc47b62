// The canonical one-line text of a Problem and of a Case. Only what differs from the default is
// printed, in the order of the fields; parse(print(x)) == x for every legal x.
//   q=2x4x5x64 kv=2x7x32 ...      the exact grammar is in reference/README.md
#pragma once
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>

#include "reference/problem.hpp"
#include "reference/subject.hpp"

namespace attest {

/// An operating error: no file, bad line, bad plugin. Thrown at the edges, caught in main: exit 2.
/// The message says what was wrong, where, and what to do.
struct Error : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The enumerators of each enumeration are spelled in exactly one place: text.cpp.
std::string_view name_of(Format format);
std::string_view name_of(Alignment alignment);
std::string_view name_of(EmptyRow empty_row);
std::string_view name_of(EmptyLse empty_lse);
std::string_view name_of(LogBase lse_base);
std::string_view name_of(Strided tensor);
std::string_view name_of(Layout layout);
std::string_view name_of(Scales scales);
std::string_view name_of(Rope rope);
std::string_view name_of(Operation operation);

std::string print(const Problem& problem);
std::string print(const Case& test_case);
/// Throw Error naming the column (from 1), what was found and what would have been legal; an
/// unknown key or name suggests the nearest known one.
Problem parse_problem(std::string_view line);
Case parse_case(std::string_view line);

/// 1/sqrt(head_dim) rounded to f32: the scale of a line that names none.
float default_scale(Index head_dim);

/// The nearest of `known` to `word` by edit distance, or empty when nothing is near.
std::string nearest(std::string_view word, std::span<const std::string_view> known);

/// Why a Problem is impossible (e.g. "num_heads_kv 3 does not divide num_heads_q 4"), or empty.
std::string invalidity(const Problem& problem);

}  // namespace attest
