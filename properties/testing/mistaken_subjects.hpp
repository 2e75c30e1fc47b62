// Subjects that make mistakes: the oracle put another question, or with its reply spoilt. For the
// list of mistakes alone (mistakes.cpp).
#pragma once
#include <cmath>
#include <functional>
#include <utility>

#include "properties/oracle_subject.hpp"
#include "reference/text.hpp"

namespace attest {

/// The oracle, asked another question than the one put.
inline Subject misunderstanding(std::function<void(Problem&, Values&)> change) {
  Subject subject = oracle_subject();
  intercept<Attend>(subject, [=](const Attend& asked, Poison poison, const Handler& right) {
    Problem problem = asked.problem;
    Values values = asked.values;
    change(problem, values);
    return right(Attend{asked.operation, problem, values}, poison);
  });
  return subject;
}

/// The oracle, with its reply spoilt.
inline Subject spoiling(std::function<void(const Problem&, Reply&)> spoil) {
  Subject subject = oracle_subject();
  intercept<Attend>(subject, [=](const Attend& asked, Poison poison, const Handler& right) {
    Reply reply = right(asked, poison);
    spoil(asked.problem, reply);
    return reply;
  });
  return subject;
}

inline Subject appending(std::function<void(CacheUpdate&)> change) {
  Subject subject = oracle_subject();
  intercept<Append>(subject, [=](const Append& asked, Poison poison, const Handler& right) {
    CacheUpdate update = asked.update;
    change(update);
    return right(Append{asked.problem, update}, poison);
  });
  return subject;
}

/// Towards zero by one pattern, where the nearest number was further from it than what was given.
inline Subject truncating_append() {
  Subject subject = oracle_subject();
  intercept<Append>(subject, [](const Append& asked, Poison poison, const Handler& right) {
    Reply reply = right(asked, poison);
    const Problem& problem = asked.problem;
    const CacheUpdate& update = asked.update;
    if (problem.rope != Rope::none || problem.scales != Scales::none || problem.ring > 0) {
      return reply;
    }
    for (Index b = 0; b < reply.v.extent[0]; ++b) {
      const auto entry = static_cast<std::size_t>(b);
      for (Index h = 0; h < reply.v.extent[1]; ++h) {
        for (Index r = 0; r < update.new_seqlens[entry]; ++r) {
          const Index slot = update.cache_seqlens[entry] + r;
          if (slot >= reply.v.extent[2]) break;
          for (Index c = 0; c < reply.v.extent[3]; ++c) {
            const Index at = reply.v.offset(b, h, slot, c);
            const double given = std::fabs(update.new_v.at(b, h, r, c));
            if (std::fabs(reply.v.at(at)) > given) reply.v.set_bits(at, reply.v.bits(at) - 1);
          }
        }
      }
    }
    return reply;
  });
  return subject;
}

inline void scale_all(Tensor& tensor, double factor) {
  for (Index flat = 0; flat < tensor.count(); ++flat) tensor.set(flat, tensor.at(flat) * factor);
}

}  // namespace attest
