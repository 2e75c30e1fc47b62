// What no property may say of a correct subject: that it is wrong where numbers overflow or are
// none, or that a case is vacuous which asks for what it does not offer; and that a kernel which
// packs its inputs writes a score matrix.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "properties/ask.hpp"
#include "properties/domains/hard_cases.hpp"
#include "properties/fills.hpp"
#include "properties/oracle_subject.hpp"
#include "properties/property.hpp"
#include "properties/testing/counted_subject.hpp"
#include "properties/testing/tiled_subject.hpp"
#include "reference/formats.hpp"
#include "reference/text.hpp"

namespace attest {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Scales, caps and values at the ends of what can be said; `causal` and equal lengths where a
// property needs a sequence.
constexpr const char* kHostile[] = {
    "q=1x2x3x8 kv=1x5x8 scale=3e38",
    "q=1x1x5x4 kv=1x5x4 causal scale=-3e38 fill=normal",
    "q=1x1x5x4 kv=1x5x4 causal scale=0 fill=normal",
    "q=1x1x4x4 kv=1x2x4 scale=3e38 fill=signs",
    "q=1x1x4x4 kv=1x2x2 scale=1e-38 fill=signs",
    "q=2x2x3x4 kv=1x17x4 scale=1e30 softcap=1e-30 fill=normal",
    "q=1x1x3x4 kv=1x17x4 scale=16 softcap=1e30 fill=normal",
    "q=1x2x3x4 kv=2x9x4 splits=3 scale=1e38 sinks alibi bias mask fill=peaky",
    "q=2x1x6x4 kv=1x6x4 causal in=f16 out=f16 scale=3e4 fill=overflow_f16",
    "q=1x1x6x4 kv=1x6x4 causal in=f16 out=f16 fill=large_values",
    "q=1x1x6x4 kv=1x6x4 causal in=bf16 out=f16 fill=large_values",
    "q=2x1x2x4 kv=1x9x4 fill=large_values scale=1e30",
    "q=1x1x2x8 kv=1x9x8 cache=e5m2 scales=token page=4 scale=1e30 fill=normal",
    "q=1x1x1x8 kv=1x9x8 cache=i8 scales=tensor page=4 chunk=9 scale=1e38 fill=normal",
    "q=1x1x2x4 kv=1x128x4 scale=3e38 fill=normal",
};

/// The same numbers, some of which are none; `kind` says which.
Values with_nonfinite(Values values, int kind) {
  const double number = kind == 0 ? std::nan("") : kind == 1 ? kInfinity : -kInfinity;
  for (Tensor* tensor : {&values.q, &values.k, &values.v}) {
    if (tensor->format == Format::i8 || tensor->count() == 0) continue;
    if (std::isinf(number) && !facts(tensor->format).has_infinity) continue;
    tensor->set(0, number);
    tensor->set(tensor->count() / 2, number);
  }
  return values;
}

void expect_never_violated(const Subject& subject, const Problem& problem, const Values& values,
                           const std::string& what) {
  for (const Property& property : catalogue()) {
    const Verdict verdict = property.check(subject, problem, values);
    EXPECT_NE(verdict.outcome, Outcome::violated)
        << property.name << " " << what << ": " << verdict.why;
  }
}

std::vector<Subject> correct_subjects() {
  return {counted(oracle_subject()), counted(tiled_subject(16)), counted(tiled_subject(3))};
}

TEST(FairVerdicts, NothingIsDemandedWhereNumbersOverflow) {
  for (const Subject& subject : correct_subjects()) {
    for (const char* line : kHostile) {
      const Case c = parse_case(line);
      expect_never_violated(subject, c.problem, make_values(c), line);
    }
  }
}

TEST(FairVerdicts, NorWhereVisibleNumbersAreNone) {
  for (const Subject& subject : correct_subjects()) {
    for (const char* line : kHostile) {
      const Case c = parse_case(line);
      if (c.problem.seqlen_kv == 128) continue;  // the exact oracle takes its time over all of them
      for (const int kind : {0, 1, 2}) {
        expect_never_violated(
            subject, c.problem, with_nonfinite(make_values(c), kind),
            line + std::string(" with numbers that are none, kind ") + std::to_string(kind));
      }
    }
  }
}

/// `whole` with one of its operations.
Subject only(Operation operation, const Subject& whole) {
  Subject subject;
  subject.description = whole.description;
  subject.offered.set(static_cast<std::size_t>(operation));
  subject.call = whole.call;
  return subject;
}

// Over the hard cases of all properties, so also over those that do not suit the one that is asked.
TEST(FairVerdicts, ASubjectWithoutOperationsIsDeclinedWhateverTheCase) {
  Subject none;
  none.description.counts = none.description.deterministic = true;
  none.description.batch_invariant = true;
  for (const Property& property : catalogue()) {
    for (const Property& other : catalogue()) {
      for (const std::string_view line : hard_cases(other.name)) {
        const Case c = parse_case(line);
        const Verdict verdict = property.check(none, c.problem, make_values(c));
        EXPECT_EQ(verdict.outcome, Outcome::declined)
            << property.name << " " << line << ": " << verdict.why;
      }
    }
  }
}

TEST(FairVerdicts, OneOperationIsJudgedOrDeclined) {
  const Subject whole = counted(oracle_subject());
  constexpr std::size_t kFirst = 6;
  for (const Operation operation : {Operation::prefill, Operation::decode, Operation::append,
                                    Operation::projection, Operation::copy_pages}) {
    const Subject subject = only(operation, whole);
    for (const Property& property : catalogue()) {
      if (property.name == "variance_scaling")
        continue;  // costly, and asks as effective_scale does
      const auto lines = hard_cases(property.name);
      for (std::size_t n = 0; n < std::min(kFirst, lines.size()); ++n) {
        const Case c = parse_case(lines[n]);
        const Values values = make_values(c);
        const Verdict verdict = property.check(subject, c.problem, values);
        if (verdict.outcome == Outcome::declined) continue;
        EXPECT_EQ(verdict.outcome, property.check(whole, c.problem, values).outcome)
            << property.name << " by " << name_of(operation) << " alone: " << lines[n] << ": "
            << verdict.why;
      }
    }
  }
}

/// An honest subject that writes so many bytes more.
Subject writing(std::function<Index(const Problem&)> bytes) {
  Subject subject = counted(oracle_subject());
  intercept<Attend>(subject, [bytes](const Attend& asked, Poison poison, const Handler& right) {
    Reply reply = right(asked, poison);
    reply.counters.global_written_bytes += bytes(asked.problem);
    return reply;
  });
  return subject;
}

TEST(FairVerdicts, ScratchThatGrowsWithTokensIsNoScoreMatrix) {
  const auto packed = [](const Problem& p) {  // q, k and v, three times over, in tiles of 64 rows
    const Index q = (p.seqlen_q + 63) / 64 * 64 * p.num_heads_q * p.head_dim;
    const Index kv = (p.seqlen_kv + 63) / 64 * 64 * p.num_heads_kv * (p.head_dim + p.head_dim_v);
    return 3 * 4 * p.batch * (q + kv);
  };
  const auto scores = [](const Problem& p) {
    return p.batch * p.num_heads_q * p.seqlen_q * p.seqlen_kv;
  };
  const auto outcome = [](const Subject& subject, std::string_view line) {
    const Case c = parse_case(line);
    for (const Property& property : catalogue()) {
      if (property.name != "no_score_matrix") continue;
      return property.check(subject, c.problem, make_values(c)).outcome;
    }
    return Outcome::faulted;
  };
  for (const std::string_view line : hard_cases("no_score_matrix")) {
    EXPECT_EQ(outcome(writing(packed), line), Outcome::holds) << line;
    EXPECT_EQ(outcome(writing([&](const Problem& p) { return packed(p) + scores(p); }), line),
              Outcome::violated)
        << line;
    // Of numbers of four bytes, every second one.
    EXPECT_EQ(outcome(writing([&](const Problem& p) { return 4 * (scores(p) / 2); }), line),
              Outcome::violated)
        << line;
  }
}

}  // namespace
}  // namespace attest
