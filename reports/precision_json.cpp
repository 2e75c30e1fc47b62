// A PrecisionPath as JSON and back: see the header.
#include "reports/precision_json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <type_traits>

#include "reference/names.hpp"
#include "reference/precision_text.hpp"

namespace attest {
namespace {

using Json = nlohmann::json;
using Path = PrecisionPath;

constexpr std::string_view kLastOfTheFirstVersion = "tensor_step";

Format read_format(const Fields& fields, std::string_view name) {
  const std::string word = fields.text(name);
  const auto names = format_names();
  const auto at = std::find(names.begin(), names.end(), word);
  if (at == names.end()) fields.refuse(name, fmt::format("\"{}\" is no number format", word));
  return static_cast<Format>(at - names.begin());
}

Index read_part(const Fields& fields, std::string_view name) {
  if (!fields.at(name).is_string()) return fields.integer(name);
  const auto part = split_size_named(fields.text(name));
  if (!part) fields.refuse(name, "should be a number of keys, \"even\" or \"power_of_two\"");
  return *part;
}

Json value_of(const PrecisionField& field, const Path& path) {
  return std::visit(
      [&](auto place) -> Json {
        using Place = decltype(place);
        if constexpr (std::is_same_v<Place, Format Path::*>) {
          return name_of(path.*place);
        } else if constexpr (std::is_same_v<Place, SplitSizePlace>) {
          const Index part = path.*place.value;
          return part < 0 ? Json(print_split_size(part)) : Json(part);
        } else if constexpr (std::is_same_v<Place, double Path::*>) {
          return number_of(path.*place);
        } else {
          return path.*place;
        }
      },
      field.place);
}

void read_value(const PrecisionField& field, std::string_view name, const Fields& fields,
                Path& path) {
  std::visit(
      [&](auto place) {
        using Place = decltype(place);
        if constexpr (std::is_same_v<Place, Format Path::*>) {
          path.*place = read_format(fields, name);
        } else if constexpr (std::is_same_v<Place, SplitSizePlace>) {
          path.*place.value = read_part(fields, name);
        } else if constexpr (std::is_same_v<Place, double Path::*>) {
          path.*place = fields.number(name);
        } else if constexpr (std::is_same_v<Place, bool Path::*>) {
          path.*place = fields.flag(name);
        } else {
          path.*place = fields.integer(name);
        }
      },
      field.place);
}

}  // namespace

Json json_of(const PrecisionPath& path) {
  Json json = Json::object();
  for (const PrecisionField& field : precision_fields()) {
    json[std::string(field.name)] = value_of(field, path);
  }
  return json;
}

PrecisionPath read_precision(const Fields& fields) {
  PrecisionPath path;
  bool needed = true;
  for (const PrecisionField& field : precision_fields()) {
    const bool older = !field.also.empty() && !fields.has(field.name) && fields.has(field.also);
    const std::string_view name = older ? field.also : field.name;
    if (needed || fields.has(name)) read_value(field, name, fields, path);
    if (field.name == kLastOfTheFirstVersion) needed = false;
    const std::string wrong = precision_invalidity(path);
    if (!wrong.empty()) fields.refuse(name, "is impossible: " + wrong);
  }
  return path;
}

}  // namespace attest
