// Maps become objects by name, in the order of the names.
#include "reports/sight_json.hpp"

#include <fmt/format.h>

#include "reference/text.hpp"
#include "reports/verdict_json.hpp"

namespace attest {
namespace {

using Json = nlohmann::json;

Operation operation_of(const Fields& fields, std::string_view name, const Json& word) {
  for (std::size_t i = 0; i < kOperationCount; ++i) {
    const auto operation = static_cast<Operation>(i);
    if (word.is_string() && word.get<std::string>() == name_of(operation)) return operation;
  }
  fields.refuse(name, "names no operation");
}

Case case_of(const Fields& fields, std::string_view name) {
  try {
    return parse_case(fields.text(name));
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}", fields.place(name), error.what()));
  }
}

template <class Read>
void read_each(const Fields& fields, std::string_view name, const Read& read) {
  if (!fields.has(name)) return;
  const Fields members = fields.object(name);
  for (const auto& [key, entry] : members.raw().items()) {
    read(key, Fields(entry, members.place(key)));
  }
}

Json json_of(const CoveredTally& covered) {
  Json ranges = Json::object();
  for (const auto& [name, range] : covered.ranges) {
    ranges[name] = {{"least", range.least}, {"most", range.most}};
  }
  return {{"ranges", std::move(ranges)},
          {"values", covered.values},
          {"pairs", covered.pairs},
          {"unmet_values", covered.unmet_values},
          {"unmet_pairs", covered.unmet_pairs}};
}

std::vector<std::string> texts_of(const Fields& fields, std::string_view name) {
  std::vector<std::string> texts;
  for (const Json& word : fields.list(name)) {
    if (!word.is_string()) fields.refuse(name, "holds what is no text");
    texts.push_back(word.get<std::string>());
  }
  return texts;
}

CoveredTally covered_of(const Fields& fields) {
  CoveredTally covered{.ranges = {},
                       .values = fields.count("values"),
                       .pairs = fields.count("pairs"),
                       .unmet_values = texts_of(fields, "unmet_values"),
                       .unmet_pairs = texts_of(fields, "unmet_pairs")};
  if (covered.unmet_pairs.size() > covered.pairs) {
    fields.refuse("unmet_pairs", "holds more than there are pairs");
  }
  read_each(fields, "ranges", [&covered](const std::string& name, const Fields& range) {
    covered.ranges[name] = {static_cast<Index>(range.count("least")),
                            static_cast<Index>(range.count("most"))};
  });
  return covered;
}

}  // namespace

void put_sight(Json& json, const Run& run) {
  json["offered"] = Json::array();
  for (const Operation operation : run.offered) json["offered"].push_back(name_of(operation));
  for (const char* name : {"sight", "cells", "widest"}) json[name] = Json::object();
  for (const auto& [stratum, sight] : run.sight) {
    json["sight"][stratum] = {{"answered", sight.answered},
                              {"unbounded", sight.unbounded},
                              {"blind", sight.blind},
                              {"sharp", sight.sharp}};
  }
  for (const auto& [name, cell] : run.cells) {
    json["cells"][name] = {{"operation", name_of(cell.operation)},
                           {"kernels", cell.kernels},
                           {"cases", cell.cases},
                           {"sharp", cell.sharp},
                           {"smallest", print(cell.smallest)}};
  }
  for (const auto& [name, widest] : run.widest) {
    json["widest"][name] = {{"size", number_of(widest.size)},
                            {"property", widest.property},
                            {"case", print(widest.test_case)}};
  }
  json["covered"] = Json::object();
  for (const auto& [operation, covered] : run.covered) {
    json["covered"][std::string(name_of(operation))] = json_of(covered);
  }
  json["unreproduced"] = Json::array();
  for (const Unreproduced& once : run.unreproduced) {
    json["unreproduced"].push_back({{"property", once.property},
                                    {"case", print(once.test_case)},
                                    {"setting", json_of(once.setting)},
                                    {"what", once.what}});
  }
}

void read_sight(const Fields& fields, Run& run) {
  if (fields.has("offered")) {
    for (const Json& word : fields.list("offered")) {
      run.offered.push_back(operation_of(fields, "offered", word));
    }
  }
  read_each(fields, "sight", [&run](const std::string& name, const Fields& sight) {
    run.sight[name] = {.answered = sight.count("answered"),
                       .unbounded = sight.count("unbounded"),
                       .blind = sight.count("blind"),
                       .sharp = sight.count("sharp")};
  });
  read_each(fields, "cells", [&run](const std::string& name, const Fields& cell) {
    run.cells[name] = {.operation = operation_of(cell, "operation", cell.at("operation")),
                       .kernels = cell.text("kernels"),
                       .cases = cell.count("cases"),
                       .sharp = cell.count("sharp"),
                       .smallest = case_of(cell, "smallest")};
  });
  read_each(fields, "widest", [&run](const std::string& name, const Fields& widest) {
    run.widest[name] = {.size = widest.number("size"),
                        .property = widest.text("property"),
                        .test_case = case_of(widest, "case")};
  });
  read_each(fields, "covered", [&](const std::string& name, const Fields& covered) {
    run.covered[operation_of(fields, "covered", Json(name))] = covered_of(covered);
  });
  if (!fields.has("unreproduced")) return;
  std::size_t number = 0;
  for (const Json& entry : fields.list("unreproduced")) {
    const Fields once(entry, fmt::format("{}[{}]", fields.place("unreproduced"), number++));
    run.unreproduced.push_back({.property = once.text("property"),
                                .test_case = case_of(once, "case"),
                                .setting = read_setting(once),
                                .what = once.text("what")});
  }
}

}  // namespace attest
