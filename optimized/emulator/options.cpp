// Spellings of the emulator's options. The names of checkers and models exist here only.
#include "optimized/emulator/options.hpp"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <vector>

namespace attest::emulator {
namespace {

// By enumerator.
constexpr std::array kTensorModels{
    OptionName{"f32", "mma adds by fused multiply-adds in order of k"},
    OptionName{"sm_70", "tensor cores of V100"},
    OptionName{"sm_75", "tensor cores of T4"},
    OptionName{"sm_80", "tensor cores of A100"},
    OptionName{"sm_89", "tensor cores of L40 and RTX 4090"},
    OptionName{"sm_90", "tensor cores of H100"},
    OptionName{"sm_100", "tensor cores of B200"},
    OptionName{"sm_120", "tensor cores of RTX 5090"},
};
constexpr OptionName kWorstName{
    "worst:SEED", "approximate instructions err within their documented error, by the seed"};

struct CheckName {
  OptionName name;
  bool Checks::*on;
};
constexpr std::array kCheckNames{
    CheckName{{"memcheck", "bounds, alignment and lifetime of every access"}, &Checks::memcheck},
    CheckName{{"initcheck", "memory that is read before it was written"}, &Checks::initcheck},
    CheckName{{"racecheck", "accesses that nothing orders, to shared and global memory"},
              &Checks::racecheck}};

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
  for (std::size_t i = 0; i < kTensorModels.size(); ++i) {
    if (kTensorModels[i].name == name) return static_cast<TensorModel>(i);
  }
  return std::nullopt;
}

std::string joined(const std::vector<OptionName>& names) {
  std::string text;
  for (const OptionName& each : names)
    text += fmt::format("{}{}", text.empty() ? "" : ", ", each.name);
  return text;
}

}  // namespace

std::vector<OptionName> numeric_models() {
  std::vector<OptionName> names(kTensorModels.begin(), kTensorModels.end());
  names.push_back(kWorstName);
  return names;
}

std::vector<OptionName> checkers() {
  std::vector<OptionName> names;
  for (const CheckName& check : kCheckNames) names.push_back(check.name);
  names.push_back({"all", "every one of them"});
  names.push_back(
      {"none", "none of them; barriers, member masks and deadlocks are always checked"});
  return names;
}

std::string print(const NumericModel& model) {
  std::string text(kTensorModels[static_cast<std::size_t>(model.tensor)].name);
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
    problem = fmt::format("'{}' is no numeric model; there are {}, joined by '+'", part,
                          joined(numeric_models()));
    return std::nullopt;
  }
  if (!named && !model.worst) {
    problem = "a numeric model is wanted";
    return std::nullopt;
  }
  if (!named) {
    constexpr auto kFirst = static_cast<std::size_t>(TensorModel::sm_80);
    model.tensor =
        static_cast<TensorModel>(kFirst + *model.worst % (kTensorModels.size() - kFirst));
  }
  return model;
}

std::string print(const Checks& checks) {
  std::vector<std::string_view> names;
  for (const CheckName& check : kCheckNames) {
    if (checks.*check.on) names.push_back(check.name.name);
  }
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ","));
}

std::optional<Checks> parse_checks(std::string_view text, std::string& problem) {
  Checks checks{false, false, false};
  for (const std::string_view part : split(text, ',')) {
    bool known = part == "none";
    for (const CheckName& check : kCheckNames) {
      if (check.name.name == part || part == "all") checks.*check.on = known = true;
    }
    if (known) continue;
    problem = fmt::format("'{}' is no checker; there are {}", part, joined(checkers()));
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
