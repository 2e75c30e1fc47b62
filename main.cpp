// Wiring: what the command line says becomes the options of a command, and what a command says
// becomes the exit code. 0: nothing violated and enough was proven. 1: the subject is wrong. 2: the
// testbed could not tell.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <exception>
#include <functional>
#include <string>
#include <vector>

#include "reference/text.hpp"
#include "reports/commands/commands.hpp"

namespace {

constexpr int kCouldNotTell = 2;

/// The command line, and the function that the chosen command stands for.
struct Wiring {
  CLI::App app{"attest: a correctness testbed for attention kernels", "attest"};
  std::function<int()> chosen;
  attest::CampaignCommand gate, fuzz;
  attest::ReplayOptions replay;
  attest::OracleOptions oracle;
  attest::FootprintOptions footprint;
  std::string list;

  Wiring();
  template <class Options>
  CLI::App& command(const char* name, const char* what, int (*act)(const Options&),
                    Options& options) {
    CLI::App& added = *app.add_subcommand(name, what);
    added.callback([this, act, &options] { chosen = [act, &options] { return act(options); }; });
    return added;
  }
  void add_replay();
  void add_oracle();
  void add_footprint();
};

void add_device(CLI::App& command, std::string& device, double& seconds) {
  command.add_option("--device", device, "auto, cuda or emulated");
  command.add_option("--case-seconds", seconds, "a call that takes longer is a fault: hung");
}

void add_campaign(CLI::App& command, attest::CampaignCommand& options) {
  command.add_option("--subject", options.subject.subject,
                     "path of a plugin, or a name of `attest list subjects` or `mutants`");
  add_device(command, options.subject.device, options.subject.case_seconds);
  command.add_option("--budget", options.budget, "time, as 45s, 10m or 1h");
  command.add_option("--cases", options.cases, "number of cases to draw")
      ->check(attest::count_error);
  command.add_option("--seed", options.seed, "decides every case")->check(attest::count_error);
  command.add_option("--threads", options.threads, "cases at once")->check(CLI::Range(1U, 1024U));
  command.add_option("--properties", options.properties, "only these, separated by commas")
      ->delimiter(',');
  command.add_option("--report", options.report,
                     "folder for run.json, junit.xml, summary.md, cases.log and findings");
}

void Wiring::add_replay() {
  CLI::App& added = command("replay", "run one case again, bit for bit", attest::replay, replay);
  added.add_option("what", replay.what, "case line, safetensors file or finding's folder")
      ->required();
  added.add_option("--property", replay.property, "else what the finding says, or all");
  added.add_option("--problem", replay.problem, "words of a case line, for a safetensors file");
  added.add_option("--subject", replay.subject, "as for gate; else what the finding says");
  add_device(added, replay.device, replay.case_seconds);
}

void Wiring::add_oracle() {
  CLI::App& added = command("oracle", "the certified truth for a case or for anybody's tensors",
                            attest::oracle, oracle);
  added.add_option("what", oracle.what, "case line or safetensors file")->required();
  added.add_option("-o,--out", oracle.out, "file to write");
  added.add_option("--problem", oracle.problem, "words of a case line, for a safetensors file");
  added.add_option("--digits", oracle.digits, "50 or 100");
}

void Wiring::add_footprint() {
  CLI::App& added = command("footprint", "bytes of a KV cache, exactly, with the formula",
                            attest::footprint, footprint);
  added.add_option("--layers", footprint.layers)->required();
  added.add_option("--kv-heads", footprint.kv_heads)->required();
  added.add_option("--depth", footprint.depth, "width of K, and of V")->required();
  added.add_option("--v-depth", footprint.v_depth, "width of V when it differs");
  added.add_option("--tokens", footprint.tokens)->required();
  added.add_option("--batch", footprint.batch);
  added.add_option("--format", footprint.format, "of the cache");
}

Wiring::Wiring() {
  app.set_version_flag("--version", attest::version_text());
  app.require_subcommand(1);
  app.footer(attest::examples_text());
  app.option_defaults()->always_capture_default();
  add_campaign(command("gate", "judge a subject: may this change go in?", attest::gate, gate),
               gate);
  CLI::App& endless =
      command("fuzz", "gate without an end; findings join a corpus", attest::fuzz, fuzz);
  add_campaign(endless, fuzz);
  endless.add_option("--corpus", fuzz.corpus, "folder of findings, and of where to go on");
  add_replay();
  add_oracle();
  add_footprint();
  command("list", "every name there is", attest::list, list)
      .add_option("what", list, "properties, fills, formats, subjects, mutants, ...");
}

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
  if (error.get_exit_code() == 0) return app.exit(error);  // --help, --version
  std::string what = error.what();
  if (const std::vector<std::string> extra = app.remaining(true); !extra.empty()) {
    const std::string near = meant(app, extra.front());
    what = fmt::format("'{}' is not known here{}", extra.front(),
                       near.empty() ? "" : fmt::format("; did you mean '{}'?", near));
  }
  fmt::print(stderr, "attest: {} (`attest --help` shows how)\n", what);
  return kCouldNotTell;
}

}  // namespace

int main(int argc, char** argv) {
  Wiring wiring;
  try {
    wiring.app.parse(argc, argv);
    return attest::printed(wiring.chosen());
  } catch (const CLI::ParseError& error) {
    return usage_error(wiring.app, error);
  } catch (const std::exception& error) {
    std::fflush(stdout);
    fmt::print(stderr, "attest: {}\n", error.what());
  }
  return kCouldNotTell;
}
