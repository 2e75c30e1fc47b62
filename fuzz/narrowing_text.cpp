// The words behind `--where`, one term each.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "fuzz/narrowing.hpp"
#include "reference/one_line.hpp"
#include "reference/text.hpp"

namespace attest {
namespace {

using Term = Narrowing::Term;
using Range = Narrowing::Range;

constexpr std::string_view kNot = "no-";
constexpr Index kNoEnd = std::numeric_limits<Index>::max();

[[noreturn]] void refuse(const std::string& why) {
  throw Error(fmt::format("--where: {} (attest list where)", why));
}

bool is_called(const Attribute& attribute, std::string_view name) {
  return attribute.name == name || (!attribute.also.empty() && attribute.also == name);
}

const Attribute* find(std::string_view name, bool word) {
  const auto at = std::ranges::find_if(attributes(), [&](const Attribute& attribute) {
    return attribute.is_word() == word && is_called(attribute, name);
  });
  return at == attributes().end() ? nullptr : &*at;
}

std::string did_you_mean(std::string_view word, std::span<const std::string_view> known) {
  const std::string near = nearest(word, known);
  return near.empty() ? std::string() : fmt::format("; did you mean {}?", near);
}

[[noreturn]] void refuse_unknown(std::string_view name) {
  std::vector<std::string_view> known;
  for (const Attribute& attribute : attributes()) {
    known.push_back(attribute.name);
    if (!attribute.also.empty()) known.push_back(attribute.also);
  }
  refuse(fmt::format("'{}' is no attribute{}", one_line(name), did_you_mean(name, known)));
}

Index read_number(std::string_view text, std::string_view name) {
  Index number = 0;
  const auto [stop, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failed != std::errc() || stop != text.data() + text.size() || number < 0) {
    refuse(fmt::format("{}: '{}' is no count; write 64, 64,128, 64..128 or 64..", name,
                       one_line(text)));
  }
  return number;
}

Range read_value(std::string_view text, const Attribute& attribute) {
  if (attribute.names != nullptr) {
    const auto names = attribute.names();
    const auto at = std::ranges::find(names, text);
    if (at == names.end()) {
      refuse(fmt::format("{}: '{}' is none of {}{}", attribute.name, one_line(text),
                         fmt::join(names, ", "), did_you_mean(text, names)));
    }
    const Index value = at - names.begin();
    return {value, value};
  }
  const std::size_t dots = text.find("..");
  if (dots == std::string_view::npos) {
    const Index number = read_number(text, attribute.name);
    return {number, number};
  }
  const std::string_view end = text.substr(dots + 2);
  const Range range{read_number(text.substr(0, dots), attribute.name),
                    end.empty() ? kNoEnd : read_number(end, attribute.name)};
  if (range.low > range.high) {
    refuse(fmt::format("{}: {} ends before it begins", attribute.name, text));
  }
  return range;
}

Term read_valued(std::string_view name, std::string_view values) {
  const Attribute* attribute = find(name, false);
  if (attribute == nullptr) {
    if (find(name, true) == nullptr) refuse_unknown(name);
    refuse(fmt::format("{} takes no value; write {} or {}{}", name, name, kNot, name));
  }
  Term term{attribute, {}};
  for (std::size_t start = 0;;) {
    const std::size_t stop = std::min(values.find(',', start), values.size());
    term.ranges.push_back(read_value(values.substr(start, stop - start), *attribute));
    if (stop == values.size()) return term;
    start = stop + 1;
  }
}

Term read_word(std::string_view word) {
  const bool wanted = !word.starts_with(kNot);
  const std::string_view name = wanted ? word : word.substr(kNot.size());
  if (const Attribute* attribute = find(name, true)) return {attribute, {}, wanted};
  const Attribute* valued = find(name, false);
  if (valued == nullptr) refuse_unknown(name);
  refuse(fmt::format("{} takes a value: {}", name, form_of(*valued)));
}

void add(Narrowing& narrowing, Term term) {
  for (const Term& other : narrowing.terms) {
    if (other.attribute != term.attribute) continue;
    const std::string_view name = term.attribute->name;
    if (other.wanted != term.wanted) {
      refuse(fmt::format("{} and {}{} contradict each other", name, kNot, name));
    }
    refuse(term.attribute->is_word()
               ? fmt::format("{} is said twice", name)
               : fmt::format("{} is said twice; write a list: {}=64,128", name, name));
  }
  narrowing.terms.push_back(std::move(term));
}

bool says(const Narrowing& narrowing, const Attribute* attribute) {
  return std::ranges::find(narrowing.terms, attribute, &Term::attribute) != narrowing.terms.end();
}

}  // namespace

Narrowing parse_narrowing(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\n\r";
  Narrowing narrowing;
  for (std::size_t start = text.find_first_not_of(kBlanks); start != std::string_view::npos;) {
    const std::size_t stop = std::min(text.find_first_of(kBlanks, start), text.size());
    const std::string_view word = text.substr(start, stop - start);
    const std::size_t equals = word.find('=');
    add(narrowing, equals == std::string_view::npos
                       ? read_word(word)
                       : read_valued(word.substr(0, equals), word.substr(equals + 1)));
    if (!narrowing.text.empty()) narrowing.text += ' ';
    narrowing.text += word;
    start = text.find_first_not_of(kBlanks, stop);
  }
  const Attribute* unequal = find("unequal_depths", true);
  if (says(narrowing, find("head_dim", false)) && !says(narrowing, find("head_dim_v", false)) &&
      !says(narrowing, unequal)) {
    narrowing.terms.push_back({unequal, {}, false});
  }
  return narrowing;
}

}  // namespace attest
