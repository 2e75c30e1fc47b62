// Wiring: what the command line says becomes the options of a command, and what a command says
// becomes the exit code. 0: nothing violated and enough was proven. 1: the subject is wrong. 2: the
// testbed could not tell. Which words there are is the table's business.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <functional>
#include <string>
#include <type_traits>
#include <vector>

#include "reference/text.hpp"
#include "reports/commands/command_words.hpp"
#include "reports/commands/standard_streams.hpp"

namespace {

constexpr int kCouldNotTell = 2;

void add(CLI::App& command, const attest::OptionWord& word) {
  CLI::Option* option = std::visit(
      [&](auto* place) {
        if constexpr (std::is_same_v<decltype(place), bool*>) {
          return command.add_flag(word.name, *place, word.what);
        } else {
          return command.add_option(word.name, *place, word.what);
        }
      },
      word.place);
  option->required(word.required);
  if (word.separator != 0) option->delimiter(word.separator);
  if (word.problem != nullptr) option->check(word.problem);
}

/// The command line, and the function that the chosen command stands for.
struct Wiring {
  CLI::App app{"attest: a correctness testbed for attention kernels", "attest"};
  attest::AllOptions options;
  std::function<int()> chosen;

  Wiring() {
    app.set_version_flag("--version", attest::version_text());
    app.require_subcommand(1);
    app.footer(attest::examples_text());
    app.option_defaults()->always_capture_default();
    for (const attest::CommandWord& command : attest::command_words(options)) {
      CLI::App& added = *app.add_subcommand(command.name, command.what);
      added.footer("Example:\n  " + command.example);
      added.callback([this, act = command.act] { chosen = act; });
      for (const attest::OptionWord& word : command.options) add(added, word);
    }
  }
};

/// What the user may have meant by `word`: a command, or an option of the command that was given.
std::string meant(const CLI::App& app, const std::string& word) {
  const auto given = app.get_subcommands();
  const CLI::App& scope = given.empty() ? app : *given.front();
  std::vector<std::string> names;
  for (const auto* option : scope.get_options()) names.push_back(option->get_name());
  for (const auto* command : scope.get_subcommands(nullptr)) names.push_back(command->get_name());
  return attest::nearest(word.substr(0, word.find('=')),
                         std::vector<std::string_view>(names.begin(), names.end()));
}

int usage_error(const CLI::App& app, const CLI::ParseError& error) {
  if (error.get_exit_code() == 0) return attest::printed(app.exit(error));  // --help, --version
  std::string what = error.what();
  std::vector<std::string> extra = app.remaining(true);
  std::erase(extra, "--");  // which only says that no option follows
  if (!extra.empty()) {
    const std::string near = meant(app, extra.front());
    what = fmt::format("'{}' is not known here{}", extra.front(),
                       near.empty() ? "" : fmt::format("; did you mean '{}'?", near));
  }
  return attest::despite(kCouldNotTell, what + " (`attest --help` shows how)");
}

}  // namespace

int main(int argc, char** argv) {
  attest::prepare_standard_streams();
  Wiring wiring;
  try {
    wiring.app.parse(argc, argv);
    return attest::printed(wiring.chosen());
  } catch (const CLI::ParseError& error) {
    return usage_error(wiring.app, error);
  } catch (const std::exception& error) {
    std::fflush(stdout);
    return attest::despite(kCouldNotTell, error.what());
  }
}
