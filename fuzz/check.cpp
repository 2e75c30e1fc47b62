// How a check is written, read and run. The subject is watched through a wrapper, so that faults
// and bits are known whatever a property makes of them.
#include "fuzz/check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "properties/fills.hpp"
#include "reference/text.hpp"

namespace attest {
namespace {

std::uint64_t mixed(std::uint64_t digest, const std::byte* bytes, std::size_t count) {
  constexpr std::uint64_t kPrime = 0x100000001b3ULL;  // FNV-1a, 64 bits
  for (std::size_t i = 0; i < count; ++i) {
    digest = (digest ^ std::to_integer<std::uint64_t>(bytes[i])) * kPrime;
  }
  return digest;
}

Reply watched(Reply reply, Observation& seen) {
  ++seen.replies;
  seen.counters += reply.counters;
  if (reply.fault) {
    if (seen.fault_kind.empty()) seen.fault_kind = reply.fault->kind;
    return reply;
  }
  for (const Tensor* tensor : {&reply.o, &reply.k, &reply.v, &reply.y}) {
    if (tensor->count() > 0) seen.o_digest = digest_of(*tensor, seen.o_digest);
  }
  if (reply.lse.count() > 0) seen.lse_digest = digest_of(reply.lse, seen.lse_digest);
  return reply;
}

template <class Function>
Function watching(const Function& function, Observation& seen) {
  if (!function) return {};
  return [&function, &seen](const auto&... arguments) {
    return watched(function(arguments...), seen);
  };
}

std::vector<std::string_view> property_names() {
  std::vector<std::string_view> names;
  for (const Property& property : catalogue()) names.push_back(property.name);
  return names;
}

}  // namespace

std::string print(const PropertyCase& check) {
  const std::string line = print(check.test_case);
  if (check.property.empty() || line.empty()) return check.property + line;
  return check.property + " " + line;
}

PropertyCase parse_check(std::string_view line) {
  const std::size_t begin = std::min(line.find_first_not_of(" \t"), line.size());
  const std::size_t end = std::min(line.find_first_of(" \t", begin), line.size());
  const std::string_view word = line.substr(begin, end - begin);
  const auto names_it = [word](const Property& property) { return property.name == word; };
  if (std::ranges::any_of(catalogue(), names_it)) {
    // Blanks in its place, so that errors name columns of the whole line.
    return {std::string(word), parse_case(std::string(end, ' ').append(line.substr(end)))};
  }
  try {
    return {{}, parse_case(line)};
  } catch (const Error&) {
    // A first word that is nearly a property was meant to be one; flags such as `causal` are not.
    if (word.find('=') == std::string_view::npos && !nearest(word, property_names()).empty()) {
      property_named(word);
    }
    throw;
  }
}

const Property& property_named(std::string_view name) {
  for (const Property& property : catalogue()) {
    if (property.name == name) return property;
  }
  const std::string near = nearest(name, property_names());
  throw Error(fmt::format("there is no property '{}'; {}", name,
                          near.empty() ? "`attest list properties` names them all"
                                       : fmt::format("did you mean '{}'?", near)));
}

std::string kind_of(const Observation& seen) {
  switch (seen.verdict.outcome) {
    case Outcome::holds:
      return "holds";
    case Outcome::violated:
      return "violated";
    case Outcome::vacuous:
      return "vacuous";
    case Outcome::declined:
      return "declined";
    case Outcome::faulted:
      return seen.fault_kind.empty() ? "faulted" : "faulted: " + seen.fault_kind;
  }
  return {};
}

std::uint64_t digest_of(const Tensor& tensor, std::uint64_t digest) {
  const auto format = static_cast<std::byte>(tensor.format);
  digest = mixed(digest, &format, 1);
  for (const Index extent : tensor.extent) {
    std::array<std::byte, 8> little{};
    for (std::size_t i = 0; i < little.size(); ++i) {
      little[i] = static_cast<std::byte>(static_cast<std::uint64_t>(extent) >> (8 * i));
    }
    digest = mixed(digest, little.data(), little.size());
  }
  return mixed(digest, tensor.bytes.data(), tensor.bytes.size());
}

Observation observe(const Subject& subject, const Property& property, const Problem& problem,
                    const Values& values) {
  Observation seen;
  seen.o_digest = seen.lse_digest = digest_of(Tensor{});
  Subject watcher = subject;
  watcher.prefill = watching(subject.prefill, seen);
  watcher.decode = watching(subject.decode, seen);
  watcher.append = watching(subject.append, seen);
  watcher.projection = watching(subject.projection, seen);
  seen.verdict = property.check(watcher, problem, values);
  return seen;
}

Observation observe(const Subject& subject, const Property& property, const Case& test_case) {
  return observe(subject, property, test_case.problem, make_values(test_case));
}

Verdict check_case(const Subject& subject, const Property& property, const Case& test_case) {
  return observe(subject, property, test_case).verdict;
}

}  // namespace attest
