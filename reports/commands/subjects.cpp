// Names come from the folders beside the program, so that a new plugin or mutant needs no line
// here.
#include "reports/commands/subjects.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <system_error>

#include "optimized/plugin/worker.hpp"
#include "reference/text.hpp"
#include "reports/commands/emulation.hpp"

namespace attest {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kOurs = "ours", kOursPlugin = "attest_kernels";

DeviceChoice device_named(const std::string& word) {
  constexpr std::array<std::string_view, 3> kWords{"auto", "cuda", "emulated"};
  if (word == kWords[0]) return DeviceChoice::automatic;
  if (word == kWords[1]) return DeviceChoice::cuda;
  if (word == kWords[2]) return DeviceChoice::emulated;
  const std::string near = nearest(word, kWords);
  throw Error(fmt::format("--device: there is no device '{}'; {}", word,
                          near.empty() ? "auto, cuda and emulated are known"
                                       : fmt::format("did you mean '{}'?", near)));
}

}  // namespace

fs::path program_folder() {
  return fs::read_symlink("/proc/self/exe").parent_path();
}

std::vector<KnownSubject> known_plugins() {
  std::vector<KnownSubject> known;
  std::error_code failed;
  for (const fs::directory_entry& entry :
       fs::directory_iterator(program_folder() / "plugins", failed)) {
    if (entry.path().extension() != ".so") continue;
    const std::string stem = entry.path().stem().string();
    const bool ours = stem == kOursPlugin;
    known.push_back({ours ? std::string(kOurs) : stem,
                     entry.path(),
                     ours ? "attest's own kernels, the default" : "a plugin built with attest",
                     {}});
  }
  std::ranges::sort(known, {}, &KnownSubject::name);
  return known;
}

std::vector<KnownSubject> known_mutants() {
  std::vector<KnownSubject> known;
  const fs::path folder = program_folder() / "mutants";
  std::ifstream file(folder / "catalogue.txt");
  for (std::string line; std::getline(file, line);) {
    const std::size_t first = line.find('\t'), second = line.find('\t', first + 1);
    if (second == std::string::npos) continue;
    const std::string name = line.substr(0, first);
    known.push_back({name, folder / (name + ".so"), line.substr(second + 1),
                     line.substr(first + 1, second - first - 1)});
  }
  return known;
}

std::string reference_of(const std::string& word) {
  const bool path = word.find('/') != std::string::npos || word.ends_with(".so");
  return path ? fs::absolute(word).lexically_normal().string() : word;
}

fs::path plugin_named(const std::string& word) {
  if (const std::string reference = reference_of(word); reference.starts_with('/'))
    return reference;
  std::vector<KnownSubject> known = known_plugins();
  std::ranges::move(known_mutants(), std::back_inserter(known));
  std::vector<std::string_view> names;
  for (const KnownSubject& subject : known) {
    names.push_back(subject.name);
    if (subject.name != word) continue;
    if (fs::exists(subject.plugin)) return subject.plugin;
    throw Error(
        fmt::format("--subject: the mutant '{}' was not built; build the target `mutants`", word));
  }
  const std::string near = nearest(word, names);
  throw Error(fmt::format("--subject: there is no subject '{}'; {}", word,
                          near.empty() ? "give the path of a plugin, or a name of `attest list "
                                         "subjects` or `attest list mutants`"
                                       : fmt::format("did you mean '{}'?", near)));
}

std::function<Subject()> subject_maker(const SubjectOptions& options) {
  constexpr double kLongest = 1e6;  // seconds: eleven days, and no clock overflows
  if (!(options.case_seconds > 0 && options.case_seconds <= kLongest)) {
    throw Error(fmt::format("--case-seconds: {} is not between 0 and {:.0f}", options.case_seconds,
                            kLongest));
  }
  WorkerOptions worker;
  worker.plugin = plugin_named(options.subject);
  worker.device = device_named(options.device);
  worker.case_seconds = options.case_seconds;
  worker.emulator = chosen(options.emulation);
  return [worker] { return open_plugin(worker); };
}

}  // namespace attest
