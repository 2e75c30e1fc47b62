// Narrowing: the part of a subject's ground that a user wants judged, from the words behind
// `--where`. What lies outside is declined as if the subject did not accept it; what is drawn is
// brought inside. Attributes are attributes.hpp's.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/attributes.hpp"
#include "properties/domains/served.hpp"
#include "reference/subject.hpp"

namespace attest {

struct Narrowing {
  /// Numbers from low to high, or the value of a name.
  struct Range {
    Index low = 0, high = 0;
  };
  struct Term {
    const Attribute* attribute = nullptr;
    std::vector<Range> ranges;  // of a word none
    bool wanted = true;         // of a word: false where it is not to be there
  };
  std::string text;         // as typed; empty: everything is asked for
  std::vector<Term> terms;  // all of them must hold
};

/// Terms separated by blanks: head_dim=64  head_dim=64,128  seqlen_kv=64..4096  seqlen_kv=64..
/// in=bf16,f16  causal  no-causal. Throws Error for what is no attribute, suggesting the nearest,
/// and for what no Problem can be.
Narrowing parse_narrowing(std::string_view text);

/// Whether the Problem is asked for when it is put to `operation`. Attributes that mean nothing to
/// that operation are not looked at.
bool asks_for(const Narrowing& narrowing, Operation operation, const Problem& problem);

/// Gives `problem` what is asked for and it does not have, as far as its other attributes allow:
/// by a seed one of the values that are asked for, without one the roundest.
void bring(const Narrowing& narrowing, Operation operation, Problem& problem,
           std::optional<std::uint64_t> seed = {});

/// For probe().
Bring bringing(const Narrowing& narrowing);

/// The case, brought to what is asked for of the operation that the named property will put it to,
/// by its seed; smaller where that would cost too much. As drawn where the property needs what is
/// not asked for.
Case brought(const Case& drawn, std::string_view property, const Narrowing& narrowing);

/// `subject`, declining what is not asked for.
Subject narrowed(Subject subject, const Narrowing& narrowing);

/// How a reason begins for which narrowed() declines.
inline constexpr std::string_view kNotAskedFor = "not asked for";

/// Throws Error when no Problem has what some term asks for beside the others.
void require_possible(const Narrowing& narrowing);

}  // namespace attest
