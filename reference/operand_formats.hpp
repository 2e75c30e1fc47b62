// In which formats numbers go into tensor cores: what they are rounded to, and by whose smallest
// normal number subnormal ones are aligned. One rule, for the model and the bounds.
#pragma once
#include "reference/formats.hpp"
#include "reference/precision.hpp"
#include "reference/problem.hpp"

namespace attest {

/// What an operand is when it meets one of `other`: a number of 8 bits is widened first, exactly,
/// unless both have 8, and integers always. One of 16 bits stays what it is, whatever it meets.
inline Format operand_format(Format own, Format other) {
  if (bytes_of(own) != 1) return own;
  if (bytes_of(other) != 1) return other;
  return own == Format::i8 || other == Format::i8 ? Format::f16 : own;
}

inline Format q_operand(const Problem& problem) {
  return operand_format(problem.input, cache_format(problem));
}
inline Format k_operand(const Problem& problem) {
  return operand_format(cache_format(problem), problem.input);
}
inline Format p_operand(const Problem& problem, const PrecisionPath& path) {
  return operand_format(path.p_format, cache_format(problem));
}
inline Format v_operand(const Problem& problem, const PrecisionPath& path) {
  return operand_format(cache_format(problem), path.p_format);
}

}  // namespace attest
