// junit.xml: one testcase per property, for the test pages of continuous-integration servers.
// Faulted findings are errors, violated ones failures, declined properties are skipped; a run that
// could not tell carries one failing testcase of its own, so that a page cannot show it as green.
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "reference/one_line.hpp"
#include "reference/text.hpp"
#include "reports/formats.hpp"
#include "reports/rendering.hpp"
#include "reports/safetensors.hpp"

namespace attest {
namespace {

// A kernel's message may hold anything; XML 1.0 has no way to spell most control characters, not
// even escaped, so they are spelled out. Line breaks are escaped: attributes would lose them.
std::string escaped(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const std::string_view letter = text.substr(0, std::max<std::size_t>(1, utf8_length(text)));
    const char c = letter.front();
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '"') {
      out += "&quot;";
    } else if (c == '\t' || c == '\n' || c == '\r') {
      out += fmt::format("&#{};", static_cast<int>(c));
    } else {
      out += one_line(letter);
    }
    text.remove_prefix(letter.size());
  }
  return out;
}

std::string failure_of(const Run& run, const Finding& finding) {
  const char* tag = finding.verdict.outcome == Outcome::faulted ? "error" : "failure";
  const Verdict& verdict = finding.verdict;
  std::string body = verdict.why + "\n";
  if (verdict.outcome != Outcome::faulted) {  // a fault left no number to judge
    body += fmt::format("error {}, bound {}, margin {} at {}\n", short_number(verdict.error),
                        short_number(verdict.bound), short_number(verdict.margin),
                        place_of(verdict.where));
  }
  body += fmt::format("case: {}\nfound as: {}\nunder: {}\nreplay: {}", print(finding.shrunk),
                      print(finding.found), text_of(emulation_of(run, finding)),
                      replay_line(run, finding));
  return fmt::format("      <{} type=\"{}\" message=\"{}\">{}</{}>\n", tag,
                     word_of(verdict.outcome), escaped(verdict.why), escaped(body), tag);
}

std::string testcase_of(const Run& run, const PropertyTally& tally) {
  std::string inside;
  for (const Finding* finding : findings_of(run, tally.property)) {
    inside += failure_of(run, *finding);
  }
  switch (standing_of(tally)) {
    case Standing::failed:
      if (inside.empty()) inside = "      <failure message=\"failed; no case was kept\"/>\n";
      break;
    case Standing::declined:
      inside += "      <skipped message=\"the subject declined every case\"/>\n";
      break;
    case Standing::unproven:
      inside += "      <failure type=\"unproven\" message=\"no case compared a number\"/>\n";
      break;
    case Standing::held:
      break;
  }
  inside +=
      fmt::format("      <system-out>{}</system-out>\n",
                  escaped(fmt::format(
                      "{} {} cases: {} held, {} wrong, {} declined, {} vacuous; largest margin {}",
                      tally.statement, tally.cases, tally.held, wrong_of(tally), tally.declined,
                      tally.vacuous, short_number(tally.margin_max))));
  return fmt::format("    <testcase classname=\"attest.{}\" name=\"{}\">\n{}    </testcase>\n",
                     escaped(short_name_of_subject(run)), escaped(tally.property), inside);
}

std::size_t occurrences(std::string_view text, std::string_view word) {
  std::size_t count = 0;
  for (auto at = text.find(word); at != text.npos; at = text.find(word, at + 1)) ++count;
  return count;
}

}  // namespace

std::string junit_of(const Run& run) {
  std::string cases;
  for (const PropertyTally& tally : run.tallies) cases += testcase_of(run, tally);
  const Conclusion conclusion = conclusion_of(run);
  std::string enough;
  if (conclusion.exit_code == 2 && !run.error.empty()) {
    enough = fmt::format("      <error type=\"could_not_tell\" message=\"{}\"/>\n",
                         escaped(conclusion.reason));
  } else if (conclusion.exit_code == 2) {
    enough = fmt::format("      <failure type=\"could_not_tell\" message=\"{}\"/>\n",
                         escaped(conclusion.reason));
  } else if (conclusion.exit_code == 1) {
    enough = "      <skipped message=\"the subject is wrong\"/>\n";
  }
  cases += fmt::format(
      "    <testcase classname=\"attest\" name=\"enough_was_proven\">\n{}    </testcase>\n",
      enough);
  const std::string counts =
      fmt::format("tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\"",
                  run.tallies.size() + 1, occurrences(cases, "<failure "),
                  occurrences(cases, "<error "), occurrences(cases, "<skipped "));
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites {}>\n"
      "  <testsuite name=\"attest\" {} time=\"{:.3f}\">\n    <properties>\n"
      "      <property name=\"version\" value=\"{}\"/>\n"
      "      <property name=\"seed\" value=\"{}\"/>\n"
      "      <property name=\"numerics\" value=\"{}\"/>\n"
      "      <property name=\"device\" value=\"{}\"/>\n"
      "      <property name=\"emulator\" value=\"{}\"/>\n    </properties>\n{}"
      "  </testsuite>\n</testsuites>\n",
      counts, counts, run.seconds, escaped(run.version), run.seed, escaped(run.numerics),
      escaped(run.device), escaped(text_of(run.emulation)), cases);
}

void write_junit(const std::filesystem::path& path, const Run& run) {
  write_whole(path, junit_of(run));
}

}  // namespace attest
