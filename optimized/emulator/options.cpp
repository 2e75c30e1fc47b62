// Spellings of the emulator's options. The names of checkers and models exist here only.
#include "optimized/emulator/options.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <vector>

namespace attest::emulator {
namespace {

// By enumerator.
constexpr std::array<std::string_view, 8> kTensorNames{"f32",   "sm_70", "sm_75",  "sm_80",
                                                       "sm_89", "sm_90", "sm_100", "sm_120"};

struct CheckName {
  std::string_view name;
  bool Checks::*on;
};
constexpr std::array kCheckNames{CheckName{"memcheck", &Checks::memcheck},
                                 CheckName{"initcheck", &Checks::initcheck},
                                 CheckName{"racecheck", &Checks::racecheck}};

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    if (end != 0) parts.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return parts;
}

std::optional<std::uint64_t> number(std::string_view text) {
  std::uint64_t value = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || stop != text.data() + text.size() || text.empty())
    return std::nullopt;
  return value;
}

std::optional<TensorModel> tensor_named(std::string_view name) {
  for (std::size_t i = 0; i < kTensorNames.size(); ++i) {
    if (kTensorNames[i] == name) return static_cast<TensorModel>(i);
  }
  return std::nullopt;
}

}  // namespace

std::string print(const NumericModel& model) {
  std::string text(kTensorNames[static_cast<std::size_t>(model.tensor)]);
  if (model.worst) text += fmt::format("+worst:{}", *model.worst);
  return text;
}

std::optional<NumericModel> parse_numerics(std::string_view text, std::string& problem) {
  NumericModel model;
  bool named = false;
  for (const std::string_view part : split(text, '+')) {
    constexpr std::string_view kWorst = "worst:";
    if (part.starts_with(kWorst)) {
      model.worst = number(part.substr(kWorst.size()));
      if (model.worst) continue;
    } else if (const auto tensor = tensor_named(part)) {
      model.tensor = *tensor;
      named = true;
      continue;
    }
    problem = fmt::format("'{}' is no numeric model; there are {} and worst:SEED, joined by '+'",
                          part, fmt::join(kTensorNames, ", "));
    return std::nullopt;
  }
  if (!named && !model.worst) {
    problem = "a numeric model is wanted";
    return std::nullopt;
  }
  if (!named) model.tensor = static_cast<TensorModel>(1 + *model.worst % (kTensorNames.size() - 1));
  return model;
}

std::string print(const Checks& checks) {
  std::vector<std::string_view> names;
  for (const CheckName& check : kCheckNames) {
    if (checks.*check.on) names.push_back(check.name);
  }
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ","));
}

std::optional<Checks> parse_checks(std::string_view text, std::string& problem) {
  Checks checks{false, false, false};
  for (const std::string_view part : split(text, ',')) {
    bool known = part == "none";
    for (const CheckName& check : kCheckNames) {
      if (check.name == part || part == "all") checks.*check.on = known = true;
    }
    if (known) continue;
    problem = fmt::format("'{}' is no checker; there are memcheck, initcheck, racecheck, all, none",
                          part);
    return std::nullopt;
  }
  return checks;
}

std::string print(const DeviceOptions& options) {
  return fmt::format("threads={} checks={} numerics={} schedule={} limit={} counters={}",
                     options.threads, print(options.checks), print(options.numerics),
                     options.schedule, options.instruction_limit, options.counters ? 1 : 0);
}

std::optional<DeviceOptions> parse_options(std::string_view text, std::string& problem) {
  DeviceOptions options;
  for (const std::string_view word : split(text, ' ')) {
    const std::size_t equals = std::min(word.find('='), word.size());
    const std::string_view name = word.substr(0, equals);
    const std::string_view value = word.substr(std::min(equals + 1, word.size()));
    const auto count = number(value);
    if (name == "checks") {
      const auto checks = parse_checks(value, problem);
      if (!checks) return std::nullopt;
      options.checks = *checks;
    } else if (name == "numerics") {
      const auto model = parse_numerics(value, problem);
      if (!model) return std::nullopt;
      options.numerics = *model;
    } else if (name == "threads" && count && *count != 0 && *count <= 1024) {
      options.threads = static_cast<unsigned>(*count);
    } else if (name == "schedule" && count) {
      options.schedule = *count;
    } else if (name == "limit" && count) {
      options.instruction_limit = *count;
    } else if (name == "counters" && count && *count <= 1) {
      options.counters = *count == 1;
    } else {
      problem = fmt::format("'{}' is no option of the emulator", word);
      return std::nullopt;
    }
  }
  return options;
}

}  // namespace attest::emulator
