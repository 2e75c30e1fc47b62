// How a check is written, read and run. The subject is watched through a wrapper, so that faults
// and bits are known whatever a property makes of them.
#include "fuzz/check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "fuzz/declared.hpp"
#include "fuzz/run.hpp"
#include "properties/fills.hpp"
#include "reference/fnv.hpp"
#include "reference/text.hpp"

namespace attest {
namespace {

Reply watched(Reply reply, Observation& seen) {
  ++seen.replies;
  seen.counters += reply.counters;
  seen.kernels.insert(reply.kernels.begin(), reply.kernels.end());
  if (reply.fault) {
    if (seen.fault_kind.empty()) seen.fault_kind = reply.fault->kind;
    return reply;
  }
  for (const Tensor* tensor :
       {&reply.o, &reply.k, &reply.v, &reply.k_scales, &reply.v_scales, &reply.y}) {
    if (tensor->count() > 0) seen.o_digest = digest_of(*tensor, seen.o_digest);
  }
  if (reply.lse.count() > 0) seen.lse_digest = digest_of(reply.lse, seen.lse_digest);
  return reply;
}

constexpr std::string_view kNumerics = "numerics=", kSchedule = "schedule=";

/// What follows `name` in the word of `line` that begins with it; blanks are left in its place.
std::optional<std::string> take_word(std::string& line, std::string_view name) {
  std::size_t at = line.find(name);
  while (at != std::string::npos && at != 0 && line[at - 1] != ' ' && line[at - 1] != '\t')
    at = line.find(name, at + 1);
  if (at == std::string::npos) return std::nullopt;
  const std::size_t end = std::min(line.find_first_of(" \t", at), line.size());
  const std::string value = line.substr(at + name.size(), end - at - name.size());
  line.replace(at, end - at, end - at, ' ');
  return value;
}

std::optional<Setting> take_setting(std::string& line) {
  const EmulationOptions usual;
  Setting setting{usual.numerics, *usual.schedule};
  const auto numerics = take_word(line, kNumerics);
  const auto schedule = take_word(line, kSchedule);
  if (!numerics && !schedule) return std::nullopt;
  std::string problem;
  if (numerics) {
    const auto model = emulator::parse_numerics(*numerics, problem);
    if (!model) throw Error(fmt::format("{}{}: {}", kNumerics, *numerics, problem));
    setting.numerics = print(*model);
  }
  if (schedule) {
    const char* end = schedule->data() + schedule->size();
    const auto [stop, failed] = std::from_chars(schedule->data(), end, setting.schedule);
    if (failed != std::errc() || stop != end)
      throw Error(fmt::format("'{}{}' is no seed of a schedule", kSchedule, *schedule));
  }
  return setting;
}

std::vector<std::string_view> property_names() {
  std::vector<std::string_view> names;
  for (const Property& property : catalogue()) names.push_back(property.name);
  return names;
}

}  // namespace

std::string print(const PropertyCase& check) {
  std::string line = print(check.test_case);
  if (!check.property.empty()) line = check.property + (line.empty() ? "" : " ") + line;
  if (!check.setting) return line;
  return fmt::format("{} {}{} {}{}", line, kNumerics, check.setting->numerics, kSchedule,
                     check.setting->schedule);
}

PropertyCase parse_check(std::string_view text) {
  // Blanks where the setting's words and the property were, so that errors name columns of `text`.
  std::string line(text);
  const std::optional<Setting> setting = take_setting(line);
  const std::size_t begin = std::min(line.find_first_not_of(" \t"), line.size());
  const std::size_t end = std::min(line.find_first_of(" \t", begin), line.size());
  const std::string word = line.substr(begin, end - begin);
  const auto names_it = [word](const Property& property) { return property.name == word; };
  if (std::ranges::any_of(catalogue(), names_it)) {
    return {word, parse_case(line.replace(begin, word.size(), word.size(), ' ')), setting};
  }
  try {
    return {{}, parse_case(line), setting};
  } catch (const Error&) {
    // A first word that is nearly a property was meant to be one; flags such as `causal` are not.
    if (word.find('=') == std::string::npos && !nearest(word, property_names()).empty()) {
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

std::vector<const Property*> properties_named(const std::vector<std::string>& names) {
  for (const std::string& name : names) property_named(name);
  std::vector<const Property*> properties;
  for (const Property& property : catalogue()) {
    if (names.empty() || std::ranges::find(names, property.name) != names.end()) {
      properties.push_back(&property);
    }
  }
  return properties;
}

std::string kind_of(const Observation& seen) {
  switch (seen.verdict.outcome) {
    case Outcome::holds:
      return "holds";
    case Outcome::violated:
      if (seen.verdict.refused_by.empty()) return "violated";
      return fmt::format("violated: {}",
                         seen.verdict.refused_by == "order_free" ? "order_free" : "by order");
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
  digest = fnv_of({&format, 1}, digest);
  for (const Index extent : tensor.extent) {
    std::array<std::byte, 8> little{};
    for (std::size_t i = 0; i < little.size(); ++i) {
      little[i] = static_cast<std::byte>(static_cast<std::uint64_t>(extent) >> (8 * i));
    }
    digest = fnv_of(little, digest);
  }
  return fnv_of(tensor.bytes, digest);
}

std::uint64_t digest_of(const Observation& seen) {
  const std::array<std::uint64_t, 2> both{seen.o_digest, seen.lse_digest};
  return fnv_of(std::as_bytes(std::span(both)));
}

Observation observe(const Subject& subject, const Property& property, const Problem& problem,
                    const Values& values) {
  Observation seen;
  seen.o_digest = seen.lse_digest = digest_of(Tensor{});
  Subject watcher = subject;
  watcher.call = [&](const Request& request, Poison poison) {
    return watched(subject.call(request, poison), seen);
  };
  watcher.precision_for = [&](Operation operation, const Problem& asked) {
    const PrecisionPath path = precision_of(subject, operation, asked);
    widen(seen.declared, path);
    return path;
  };
  seen.verdict = property.check(watcher, problem, values);
  return seen;
}

void explain(const Subject& subject, const Property& property, const Problem& problem,
             const Values& values, Verdict& verdict) {
  if (property.explain == nullptr || verdict.outcome != Outcome::violated) return;
  const std::string text = property.explain(subject, problem, values);
  if (!text.empty()) verdict.why += "; " + text;
}

Observation observe(const Subject& subject, const Property& property, const Case& test_case) {
  return observe(subject, property, test_case.problem, make_values(test_case));
}

void begin_under(const Subject& subject, const std::optional<Setting>& setting) {
  if (setting && subject.begin_under) subject.begin_under(*setting);
}

Verdict check_case(const Subject& subject, const Property& property, const Case& test_case) {
  return observe(subject, property, test_case).verdict;
}

}  // namespace attest
