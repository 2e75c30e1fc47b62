// Strict reading of JSON: see the header.
#include "reports/strict_json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "reference/one_line.hpp"

namespace attest {
namespace {

using Json = nlohmann::json;

// Deeper than any file of ours; a parser that follows nesting without end is a way to be crashed.
constexpr int kDepthMax = 16;

}  // namespace

Json parse_strictly(std::string_view text, std::string_view file_name) {
  if (const auto nul = text.find('\0'); nul != text.npos) {  // the parser would stop there
    throw Error(fmt::format("{}: not valid JSON: a NUL at byte {}", file_name, nul));
  }
  std::vector<std::set<std::string>> names;  // one set per object that is open
  const auto watch = [&](int depth, Json::parse_event_t event, Json& parsed) {
    switch (event) {
      case Json::parse_event_t::object_start:
      case Json::parse_event_t::array_start:
        if (depth >= kDepthMax) {
          throw Error(fmt::format("{}: JSON nested deeper than {} levels", file_name, kDepthMax));
        }
        if (event == Json::parse_event_t::object_start) names.emplace_back();
        break;
      case Json::parse_event_t::object_end:
        names.pop_back();
        break;
      case Json::parse_event_t::key:
        if (!names.back().insert(parsed.get<std::string>()).second) {
          throw Error(
              fmt::format("{}: the name {} stands twice in one object", file_name, parsed.dump()));
        }
        break;
      case Json::parse_event_t::array_end:
      case Json::parse_event_t::value:
        break;
    }
    return true;
  };
  try {
    return Json::parse(text.begin(), text.end(), watch);
  } catch (const Json::exception& error) {
    throw Error(fmt::format("{}: not valid JSON: {}", file_name, error.what()));
  }
}

Fields::Fields(const Json& object, std::string where) : object_(&object), where_(std::move(where)) {
  if (!object.is_object()) throw Error(where_ + ": should be a JSON object");
}

std::string Fields::place(std::string_view name) const {
  return fmt::format("{}: {}", where_, name);
}

void Fields::refuse(std::string_view name, const std::string& problem) const {
  throw Error(place(name) + " " + problem);
}

bool Fields::has(std::string_view name) const {
  return object_->contains(name);
}

const Json& Fields::at(std::string_view name) const {
  const auto found = object_->find(name);
  if (found == object_->end()) refuse(name, "is missing");
  return *found;
}

std::string Fields::text(std::string_view name) const {
  const Json& value = at(name);
  if (!value.is_string()) refuse(name, "should be a string");
  return value.get<std::string>();
}

bool Fields::flag(std::string_view name) const {
  const Json& value = at(name);
  if (!value.is_boolean()) refuse(name, "should be true or false");
  return value.get<bool>();
}

std::uint64_t Fields::count(std::string_view name) const {
  const Json& value = at(name);
  if (!value.is_number_unsigned()) refuse(name, "should be a whole number, not negative");
  return value.get<std::uint64_t>();
}

std::int64_t Fields::integer(std::string_view name) const {
  const Json& value = at(name);
  const bool too_large =
      value.is_number_unsigned() &&
      value.get<std::uint64_t>() > std::uint64_t{std::numeric_limits<std::int64_t>::max()};
  if (!value.is_number_integer() || too_large) refuse(name, "should be a whole number");
  return value.get<std::int64_t>();
}

double Fields::number(std::string_view name) const {
  const Json& value = at(name);
  if (value.is_number()) return value.get<double>();
  if (value == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (value == "inf") return std::numeric_limits<double>::infinity();
  if (value == "-inf") return -std::numeric_limits<double>::infinity();
  refuse(name, "should be a number, \"nan\", \"inf\" or \"-inf\"");
}

Fields Fields::object(std::string_view name) const {
  return Fields(at(name), place(name));
}

const Json& Fields::list(std::string_view name) const {
  const Json& value = at(name);
  if (!value.is_array()) refuse(name, "should be a list");
  return value;
}

std::string hexadecimal(std::uint64_t bits) {
  return fmt::format("{:016x}", bits);
}

std::uint64_t read_hexadecimal(const Fields& fields, std::string_view name) {
  if (!fields.has(name)) return 0;
  constexpr int kBase = 16, kDigits = 16;
  const std::string text = fields.text(name);
  std::uint64_t bits = 0;
  const char* end = text.data() + text.size();
  const auto [stop, failed] = std::from_chars(text.data(), end, bits, kBase);
  if (failed != std::errc() || stop != end || text.size() != kDigits) {
    fields.refuse(name, "should be 16 hexadecimal digits");
  }
  return bits;
}

Json number_of(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number > 0 ? "inf" : "-inf";
  return number;
}

std::string text_of(const Json& json) {
  const std::string dumped = json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
  // The library escapes control characters below a space only. What else a terminal would obey can
  // stand in strings alone, where an escape means the same.
  std::string out;
  for (std::string_view rest = dumped; !rest.empty();) {
    const std::string_view letter = rest.substr(0, std::max<std::size_t>(1, utf8_length(rest)));
    if (letter != "\n" && one_line(letter) != letter) {
      const std::string escaped = Json(letter).dump(-1, ' ', true);  // "\u009b"
      out += letter == "\x7f" ? "\\u007f" : escaped.substr(1, escaped.size() - 2);
    } else {
      out += letter;
    }
    rest.remove_prefix(letter.size());
  }
  return out;
}

}  // namespace attest
