// list: every name that a command line, a case line or a report may contain, from the catalogues
// that own them.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "fuzz/attributes.hpp"
#include "fuzz/features.hpp"
#include "properties/fills.hpp"
#include "properties/property.hpp"
#include "properties/wrong_answers.hpp"
#include "reference/bound/acceptance.hpp"
#include "reference/case_words.hpp"
#include "reference/model/model.hpp"
#include "reference/names.hpp"
#include "reference/oracle/certified.hpp"
#include "reference/precision_text.hpp"
#include "reference/statistics/directions.hpp"
#include "reference/text.hpp"
#include "reports/commands/commands.hpp"
#include "reports/commands/subjects.hpp"
#include "reports/say.hpp"
#include "reports/tensor_names.hpp"

namespace attest {
namespace {

using Row = std::pair<std::string, std::string>;
using Rows = std::vector<Row>;

Rows properties() {
  Rows rows;
  for (const Property& property : catalogue()) {
    rows.emplace_back(property.name, property.statement);
  }
  return rows;
}

Rows fill_rows() {
  Rows rows;
  for (const Fill& fill : fills()) rows.emplace_back(fill.name, fill.purpose);
  return rows;
}

Rows formats() {
  Rows rows;
  for (std::size_t i = 0; i < format_names().size(); ++i) {
    const auto format = static_cast<Format>(i);
    const Tensor one(format, {1, 1, 1, 1});
    rows.emplace_back(name_of(format), fmt::format("{} bits{}", 8 * one.bytes.size(),
                                                   format == Format::i8 ? ", in caches only" : ""));
  }
  return rows;
}

Rows feature_rows() {
  Rows rows;
  for (const Feature& feature : features()) rows.emplace_back(feature.name, feature.what);
  return rows;
}

Rows where_rows() {
  Rows rows;
  for (const Attribute& attribute : attributes()) {
    rows.emplace_back(form_of(attribute), meaning_of(attribute));
  }
  return rows;
}

Rows named(const std::vector<emulator::OptionName>& names) {
  Rows rows;
  for (const emulator::OptionName& each : names) rows.emplace_back(each.name, each.what);
  return rows;
}
Rows numerics() {
  return named(emulator::numeric_models());
}
Rows checks() {
  return named(emulator::checkers());
}

Rows subjects() {
  Rows rows;
  for (const KnownSubject& known : known_plugins()) rows.emplace_back(known.name, known.what);
  return rows;
}

Rows mutants() {
  Rows rows;
  for (const KnownSubject& known : known_mutants()) {
    rows.emplace_back(known.name, fmt::format("{} Killed by {}.", known.what, known.killed_by));
  }
  return rows;
}

Rows wrong_answers() {
  Rows rows;
  for (const std::string_view name : wrong_answer_names())
    rows.emplace_back(name, meaning_of_wrong_answer(name));
  return rows;
}

Rows paths() {
  Rows rows;
  for (const KnownPath& known : known_paths()) {
    rows.emplace_back(known.name, fmt::format("{}. Source: {}", known.what, known.source));
  }
  return rows;
}

Rows precision() {
  Rows rows;
  for (const PrecisionField& field : precision_fields()) {
    rows.emplace_back(field.form, fmt::format("{}; default {}", field.what, default_text(field)));
  }
  return rows;
}

Rows case_line() {
  Rows rows;
  for (const CaseWord& word : case_words()) {
    rows.emplace_back(word.form, fmt::format("{}; default {}", word.what, word.left_out));
  }
  return rows;
}

template <std::size_t kCount>
Rows stored(const std::array<StoredName, kCount>& names) {
  Rows rows;
  for (const StoredName& each : names) {
    rows.emplace_back(each.name, fmt::format("{}: {}", each.form, each.what));
  }
  return rows;
}
Rows tensors() {
  return stored(kTensorNames);
}
Rows metadata() {
  return stored(kMetadataNames);
}

template <std::size_t kCount>
Rows paired(const std::array<std::string_view, kCount>& names,
            const std::array<std::string_view, kCount>& meanings) {
  Rows rows;
  for (std::size_t i = 0; i < kCount; ++i) rows.emplace_back(names[i], meanings[i]);
  return rows;
}
Rows stages() {
  return paired(kStageNames, kStageMeanings);
}
Rows biases() {
  return paired(statistics::kBiasNames, statistics::kBiasMeanings);
}
Rows tiers() {
  return paired(kTierNames, kTierMeanings);
}
Rows directions() {
  Rows rows = paired(statistics::kDirectionNames, statistics::kDirectionMeanings);
  rows.emplace_back(statistics::kRowTest, "alarms only: one row is too far along any of these");
  rows.emplace_back(statistics::kElementTest, "alarms only: one element is too far");
  rows.emplace_back(statistics::kChiSquareTest,
                    "alarms only: the mean of z^2, which is due to be 1");
  return rows;
}
Rows bounds() {
  return paired(kStrengthNames,
                {"what any kernel may err that rounds as declared, in whatever order it adds",
                 "the same, following the declared order of sums and rescales",
                 "the same around what P is when it is rounded as the kernel rounds it"});
}

struct Section {
  std::string_view name;
  Rows (*rows)();
};
constexpr std::array kSections{
    Section{"properties", properties}, Section{"fills", fill_rows},
    Section{"formats", formats},       Section{"features", feature_rows},
    Section{"where", where_rows},      Section{"numerics", numerics},
    Section{"checks", checks},         Section{"subjects", subjects},
    Section{"mutants", mutants},       Section{"wrong_answers", wrong_answers},
    Section{"paths", paths},           Section{"precision", precision},
    Section{"case", case_line},        Section{"tensors", tensors},
    Section{"metadata", metadata},     Section{"bounds", bounds},
    Section{"directions", directions}, Section{"biases", biases},
    Section{"stages", stages},         Section{"tiers", tiers},
};

void print_rows(const Rows& rows, std::string_view indent) {
  std::size_t widest = 0;
  for (const Row& row : rows) widest = std::max(widest, row.first.size());
  for (const Row& row : rows) {
    if (row.second.empty()) {
      say("{}{}\n", indent, row.first);
    } else {
      say("{}{:{}}  {}\n", indent, row.first, widest, row.second);
    }
  }
}

}  // namespace

int list(const std::string& what) {
  std::vector<std::string_view> names;
  for (const Section& section : kSections) {
    names.push_back(section.name);
    if (section.name == what) {
      print_rows(section.rows(), "");
      return 0;
    }
  }
  if (!what.empty()) {
    const std::string near = nearest(what, names);
    throw Error(fmt::format("list: there is no list of '{}'; {}", what,
                            near.empty() ? fmt::format("there are {}", fmt::join(names, ", "))
                                         : fmt::format("did you mean '{}'?", near)));
  }
  for (const Section& section : kSections) {
    say("{}\n", section.name);
    print_rows(section.rows(), "  ");
  }
  return 0;
}

}  // namespace attest
