// Subjects by name: what lies beside the program, and how a name or a path becomes a Subject.
#pragma once
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "reference/subject.hpp"
#include "reports/commands/commands.hpp"

namespace attest {

/// The folder of the running program: plugins, mutants and the corpus lie below it.
std::filesystem::path program_folder();

struct KnownSubject {
  std::string name;
  std::filesystem::path plugin;
  std::string what;       // one sentence
  std::string killed_by;  // mutants: names of properties, separated by commas
};
std::vector<KnownSubject> known_plugins();
std::vector<KnownSubject> known_mutants();  // from mutants/catalogue.txt, built or not

/// A word with a slash, or that ends in .so, is a path; anything else must be a known name. Throws
/// Error suggesting the nearest.
std::filesystem::path plugin_named(const std::string& word);

/// What names the same subject from any folder: a name, or an absolute path.
std::string reference_of(const std::string& word);

/// Opens the plugin anew on every call. Throws Error for an unknown name or device; the plugin
/// itself is first looked at when the function is called.
std::function<Subject()> subject_maker(const SubjectOptions& options);

}  // namespace attest
