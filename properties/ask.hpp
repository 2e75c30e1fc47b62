// Ask: puts one question to a subject. A refusal, a fault and a misshapen reply become the verdict
// to return; otherwise the reply has the right shape and every property may read it. What the
// testbed could not execute is neither: it is an Error.
#pragma once
#include <optional>
#include <string_view>

#include "reference/subject.hpp"
#include "reference/verdict.hpp"

namespace attest {

/// The kind of a Fault, or of a finding, that says nothing of the subject: its kernel came to an
/// instruction that the emulator does not execute. Everything that asks a subject throws Error
/// then, for the testbed could not tell.
inline constexpr std::string_view kUnsupported = "unsupported";

struct Answer {
  std::optional<Verdict> instead;  // set: return this, there is nothing to judge
  Reply reply;
};

/// The verdict of a subject that does not offer the operation, or declines the Problem. What a
/// property needs is asked before it calls a case vacuous: a prefill kernel owes no cache.
std::optional<Verdict> refusal(const Subject& subject, Operation operation, const Problem& problem);

/// The operation by which properties that hold for any attention ask: decode when the Problem
/// splits the keys or its cache is on pages, in a ring or in another format, prefill otherwise, so
/// that both are covered.
Operation attention_for(const Problem& problem);

/// `operation` is prefill or decode.
Answer ask(const Subject& subject, Operation operation, const Problem& problem,
           const Values& values, Poison poison = Poison::nan);
/// attention_for(problem), put to the subject.
Answer ask_attention(const Subject& subject, const Problem& problem, const Values& values,
                     Poison poison = Poison::nan);
Answer ask_append(const Subject& subject, const Problem& problem, const CacheUpdate& update);
Answer ask_copy_pages(const Subject& subject, const Problem& problem, const PageCopy& copy);
Answer ask_projection(const Subject& subject, const Problem& problem, const Projection& projection);

}  // namespace attest
