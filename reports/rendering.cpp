// The words and numbers that every rendering of a run shares: see the header.
#include "reports/rendering.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>

#include "fuzz/check.hpp"
#include "fuzz/features.hpp"
#include "fuzz/setting.hpp"
#include "properties/wrong_answers.hpp"
#include "reference/text.hpp"
#include "reports/formats.hpp"

namespace attest {
namespace {

constexpr std::string_view kOutcomes[] = {"holds", "violated", "vacuous", "declined", "faulted"};

/// In the quotes of POSIX.1-2024 that know escapes: for a terminal that would obey the bytes.
std::string quoted_byte_by_byte(std::string_view word) {
  std::string quoted = "$'";
  for (const char c : word) {
    if (c == '\'' || c == '\\') quoted += '\\';
    const auto code = static_cast<unsigned char>(c);
    const bool printable = code >= 0x20U && code < 0x7FU;
    quoted += printable ? std::string(1, c) : fmt::format("\\{:03o}", code);
  }
  return quoted + "'";
}

}  // namespace

std::string_view word_of(Outcome outcome) {
  return kOutcomes[static_cast<std::size_t>(outcome)];
}

Outcome outcome_named(std::string_view word, const std::string& where) {
  const auto* found = std::find(std::begin(kOutcomes), std::end(kOutcomes), word);
  if (found == std::end(kOutcomes)) {
    throw Error(fmt::format("{}: \"{}\" is no outcome; known are {}", where, word,
                            fmt::join(kOutcomes, ", ")));
  }
  return static_cast<Outcome>(found - std::begin(kOutcomes));
}

Standing standing_of(const PropertyTally& tally) {
  if (wrong_of(tally) > 0) return Standing::failed;
  if (tally.cases > 0 && tally.declined == tally.cases) return Standing::declined;
  if (tally.held == 0 || tally.compared == 0) return Standing::unproven;
  return Standing::held;
}

std::string_view word_of(Standing standing) {
  switch (standing) {
    case Standing::held:
      return "holds";
    case Standing::failed:
      return "FAILED";
    case Standing::declined:
      return "declined";
    case Standing::unproven:
      return "unproven";
  }
  return "";
}

std::string short_number(double number) {
  return fmt::format("{:.3g}", number);
}

std::string place_of(const std::array<Index, 4>& where) {
  return fmt::format("batch {}, head {}, row {}, column {}", where[0], where[1], where[2],
                     where[3]);
}

PowerSplit split_power(const Run& run) {
  PowerSplit split;
  for (const auto& [name, tally] : run.power) {
    if (tally.cases > 0) (tally.refused > 0 ? split.told : split.blind).push_back(name);
  }
  for (const std::string_view name : wrong_answer_names()) {
    const auto tried = run.power.find(std::string(name));
    if (tried == run.power.end() || tried->second.cases == 0) split.untried.emplace_back(name);
  }
  std::sort(split.untried.begin(), split.untried.end());
  return split;
}

std::vector<std::string> absent_features(const Run& run) {
  std::vector<std::string> absent;
  for (const std::string& name : feature_names()) {
    const auto had = run.features.find(name);
    if (had == run.features.end() || had->second == 0) absent.push_back(name);
  }
  return absent;
}

std::uint64_t wrong_of(const PropertyTally& tally) {
  return tally.violated + tally.faulted;
}

std::string short_name_of_subject(const Run& run) {
  const std::string name = std::filesystem::path(run.subject).stem().string();
  return name.empty() ? "subject" : name;
}

std::string shell_quoted(std::string_view word) {
  const auto plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("_-./=:,+%@").find(c) != std::string_view::npos;
  };
  if (!word.empty() && std::all_of(word.begin(), word.end(), plain)) return std::string(word);
  if (one_line(word) != word) return quoted_byte_by_byte(word);
  std::string quoted = "'";
  for (const char c : word) {
    if (c == '\'') {
      quoted += "'\\''";
    } else {
      quoted += c;
    }
  }
  return quoted + "'";
}

std::vector<const Finding*> findings_of(const Run& run, std::string_view property) {
  std::vector<const Finding*> found;
  for (const Finding& finding : run.findings) {
    if (finding.property == property) found.push_back(&finding);
  }
  return found;
}

std::string joined(const std::vector<std::string>& pieces, std::string_view separator) {
  return fmt::format("{}", fmt::join(pieces, separator));
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t stop = std::min(text.find(' ', start), text.size());
    if (stop > start) words.emplace_back(text.substr(start, stop - start));
    start = stop + 1;
  }
  return words;
}

std::string wrapped(const std::string& lead, const std::vector<std::string>& words, int columns) {
  std::string out = lead;
  std::size_t used = lead.size();
  for (const std::string& word : words) {
    if (used > lead.size() && used + 1 + word.size() > static_cast<std::size_t>(columns)) {
      out += '\n';
      out.append(lead.size(), ' ');
      used = lead.size();
    }
    out += ' ';
    out += word;
    used += 1 + word.size();
  }
  return out + "\n";
}

std::string text_of(const EmulationOptions& emulation) {
  return fmt::format("numerics {}, schedule {}, checks {}", emulation.numerics,
                     emulation.schedule ? fmt::to_string(*emulation.schedule) : kDrawn,
                     emulation.checks);
}

std::string words_of(const EmulationOptions& emulation, bool drawn) {
  const EmulationOptions usual;
  std::string words;
  if (drawn || emulation.numerics != usual.numerics) {
    words += fmt::format(" --numerics {}", shell_quoted(emulation.numerics));
  }
  if (emulation.checks != usual.checks) {
    words += fmt::format(" --checks {}", shell_quoted(emulation.checks));
  }
  if (drawn || emulation.schedule != usual.schedule)
    words += fmt::format(" --schedule {}", *emulation.schedule);
  return words;
}

EmulationOptions emulation_of(const Run& run, const Finding& finding) {
  EmulationOptions emulation = without_drawing(run.emulation);
  if (finding.setting) {
    emulation.numerics = finding.setting->numerics;
    emulation.schedule = finding.setting->schedule;
  }
  return emulation;
}

std::string command_name() {
  // The launcher says how it was called, so that the line works where the user stands.
  const char* called = std::getenv("ATTEST_COMMAND");
  return called != nullptr ? shell_quoted(called) : "./attest";
}

std::string replay_line(std::string_view subject, std::string_view property, const Case& test_case,
                        const EmulationOptions& emulation, bool drawn) {
  const std::string check = print(PropertyCase{std::string(property), test_case});
  return fmt::format("{} replay {}{}{}", command_name(), shell_quoted(check),
                     subject.empty() ? "" : fmt::format(" --subject {}", shell_quoted(subject)),
                     words_of(emulation, drawn));
}

std::string replay_line(const Run& run, const Finding& finding) {
  return replay_line(run.subject, finding.property, finding.shrunk, emulation_of(run, finding),
                     finding.setting && draws(run.emulation));
}

}  // namespace attest
