// The command line as a table: every command with its options, each with the place where its value
// goes. Whoever parses the words needs nothing else; this knows no parser.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "reports/commands/commands.hpp"

namespace attest {

struct OptionWord {
  std::string name;  // "--seed", or without dashes a word that needs none
  std::string what;
  std::variant<bool*, int*, unsigned*, double*, std::uint64_t*, Index*, std::string*,
               std::optional<std::uint64_t>*, std::optional<Index>*, std::optional<std::string>*,
               std::vector<std::string>*>
      place;
  bool required = false;
  char separator = 0;                                    // of a list
  std::string (*problem)(const std::string&) = nullptr;  // why a word is refused; empty: it is not
};

struct CommandWord {
  std::string name, what, example;
  std::function<int()> act;  // with the places filled
  std::vector<OptionWord> options;
};

/// What the commands are given; the places of the table below lie in it.
struct AllOptions {
  CampaignCommand gate, fuzz;
  ReplayOptions replay;
  CompareOptions compare;
  OracleOptions oracle;
  JudgeOptions judge;
  MeasureCommand measure;
  FootprintOptions footprint;
  RunCommand run;
  std::string list;
};
std::vector<CommandWord> command_words(AllOptions& options);

}  // namespace attest
