// A Verdict as JSON and back: see the header.
#include "reports/verdict_json.hpp"

#include <fmt/format.h>

#include "reports/rendering.hpp"

namespace attest {

using Json = nlohmann::json;

Json json_of(const Verdict& verdict) {
  Json power = Json::array();
  for (const Power& entry : verdict.power) {
    power.push_back({{"wrong_answer", entry.wrong_answer}, {"refused", entry.refused}});
  }
  return {{"outcome", word_of(verdict.outcome)},
          {"error", number_of(verdict.error)},
          {"bound", number_of(verdict.bound)},
          {"margin", number_of(verdict.margin)},
          {"where", verdict.where},
          {"compared", verdict.compared},
          {"why", verdict.why},
          {"power", power}};
}

std::array<Index, 4> read_where(const Fields& fields, std::string_view name) {
  const Json& list = fields.list(name);
  std::array<Index, 4> where{};
  if (list.size() != where.size()) fields.refuse(name, "should list four whole numbers");
  for (std::size_t axis = 0; axis < where.size(); ++axis) {
    if (!list[axis].is_number_integer()) fields.refuse(name, "should list four whole numbers");
    where[axis] = list[axis].get<Index>();
  }
  return where;
}

Verdict read_verdict(const Fields& fields) {
  Verdict verdict{.outcome = outcome_named(fields.text("outcome"), fields.place("outcome")),
                  .error = fields.number("error"),
                  .bound = fields.number("bound"),
                  .margin = fields.number("margin"),
                  .where = read_where(fields, "where"),
                  .compared = fields.integer("compared"),
                  .why = fields.text("why"),
                  .power = {}};
  std::size_t number = 0;
  for (const Json& entry : fields.list("power")) {
    const Fields power(entry, fmt::format("{}[{}]", fields.place("power"), number++));
    verdict.power.push_back(
        {.wrong_answer = power.text("wrong_answer"), .refused = power.flag("refused")});
  }
  return verdict;
}

nlohmann::json json_of(const EmulationOptions& emulation) {
  return {{"numerics", emulation.numerics},
          {"checks", emulation.checks},
          {"schedule", emulation.schedule ? Json(*emulation.schedule) : Json(kDrawn)}};
}

EmulationOptions read_emulation(const Fields& fields) {
  if (!fields.has("emulation")) return {};
  const Fields emulation = fields.object("emulation");
  EmulationOptions read{emulation.text("numerics"), emulation.text("checks"), std::nullopt};
  if (emulation.at("schedule") != kDrawn) read.schedule = emulation.count("schedule");
  return read;
}

Json json_of(const std::optional<Setting>& setting) {
  if (!setting) return {};
  return {{"numerics", setting->numerics}, {"schedule", setting->schedule}};
}

std::optional<Setting> read_setting(const Fields& fields) {
  if (!fields.has("setting") || fields.at("setting").is_null()) return std::nullopt;
  const Fields setting = fields.object("setting");
  return Setting{setting.text("numerics"), setting.count("schedule")};
}

}  // namespace attest
