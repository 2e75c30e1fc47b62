// Pairs: which kinds of values a subject accepts together, and a plan of Problems in which each of
// these pairs occurs. Most faults need one feature or two together, hardly any need many (Kuhn,
// Wallace and Gallo, IEEE Transactions on Software Engineering 30 (6), 2004).
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "properties/domains/dimensions.hpp"

namespace attest {

using Accepts = std::function<bool(const Problem&)>;

/// What is accepted of one operation, by number of the dimension; see served.hpp.
using AcceptedValues = std::vector<std::vector<Problem>>;

struct Pairs {
  std::vector<std::string> kinds;             // of all dimensions that the operation reads
  std::map<std::string, std::size_t> number;  // of a kind
  std::vector<std::vector<bool>> together;    // by number: accepted in one Problem; symmetric
  std::uint64_t count() const;
};

/// Asks one or two questions per pair.
Pairs pairs_of(Operation operation, const AcceptedValues& accepted, const Accepts& accepts);

/// Numbers of the kinds that the Problem has, where `pairs` knows them.
std::vector<std::size_t> kinds_of(const Pairs& pairs, Operation operation, const Problem& problem);

/// Problems that are accepted and in which every pair occurs, but for pairs that were accepted once
/// and are not when asked again. The first ones hold the most that is new. Greedy, so longer than
/// the shortest such list, which nobody knows how to find.
std::vector<Problem> plan_of(Operation operation, const Pairs& pairs,
                             const AcceptedValues& accepted, const Accepts& accepts);

}  // namespace attest
