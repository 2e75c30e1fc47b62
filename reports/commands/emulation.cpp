// Words that are wrong are refused before anything starts, with the nearest that is right.
#include "reports/commands/emulation.hpp"

#include <fmt/format.h>

#include "fuzz/setting.hpp"
#include "reference/text.hpp"

namespace attest {
namespace {

/// `problem` quotes the word that is wrong; the nearest of `known` to it follows.
[[noreturn]] void refuse(const char* option, const std::string& problem,
                         const std::vector<emulator::OptionName>& known) {
  std::vector<std::string_view> names;
  for (const emulator::OptionName& each : known) names.push_back(each.name);
  const std::size_t begin = problem.find('\'') + 1;
  const std::string near = nearest(problem.substr(begin, problem.find('\'', begin) - begin), names);
  throw Error(fmt::format("{}: {}{}", option, problem,
                          near.empty() ? "" : fmt::format("; did you mean '{}'?", near)));
}

}  // namespace

emulator::DeviceOptions chosen(const EmulationOptions& options) {
  emulator::DeviceOptions device;
  std::string problem;
  const auto checks = emulator::parse_checks(options.checks, problem);
  if (!checks || options.checks.empty()) {
    if (problem.empty()) problem = "'' is no checker";
    refuse("--checks", problem, emulator::checkers());
  }
  const auto numerics = emulator::parse_numerics(options.numerics, problem);
  if (!numerics) refuse("--numerics", problem, emulator::numeric_models());
  device.checks = *checks;
  device.numerics = *numerics;
  device.schedule = options.schedule.value_or(0);
  return device;
}

EmulationOptions spelled(const EmulationOptions& options) {
  const emulator::DeviceOptions device = chosen(without_drawing(options));
  return {options.numerics == kDrawn ? options.numerics : print(device.numerics),
          print(device.checks), options.schedule};
}

}  // namespace attest
