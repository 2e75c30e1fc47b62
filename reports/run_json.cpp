// run.json, schema 1: a Run as JSON and back. The schema is documented in README.md.
// A property's `redrawn` and `declines`, a list of `why` and `cases`, a finding's `setting`,
// `digest`, `version` and `subject_hash`, and the run's `counters` and `models`, numbers by name,
// came later, and so did `where`: files without them are read too, as are those without what
// sight_json writes.
// `judged` is written for readers only.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>

#include "reference/text.hpp"
#include "reports/formats.hpp"
#include "reports/precision_json.hpp"
#include "reports/rendering.hpp"
#include "reports/safetensors.hpp"
#include "reports/sight_json.hpp"
#include "reports/strict_json.hpp"
#include "reports/verdict_json.hpp"

namespace attest {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kSchema = 1;

// The default Case stands for "none was met" and is written as null.
Json json_of(const Case& test_case) {
  return test_case == Case{} ? Json() : Json(print(test_case));
}

Case read_case(const Fields& fields, std::string_view name) {
  if (fields.at(name).is_null()) return {};
  try {
    return parse_case(fields.text(name));
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}", fields.place(name), error.what()));
  }
}

// A list, not an object: two reasons that differ only in bytes that are no text would be one name.
Json json_of_declines(const PropertyTally& tally) {
  Json list = Json::array();
  for (const auto& [why, cases] : tally.declines) list.push_back({{"why", why}, {"cases", cases}});
  return list;
}

std::map<std::string, std::uint64_t> read_declines(const Fields& fields) {
  std::map<std::string, std::uint64_t> declines;
  if (!fields.has("declines")) return declines;
  std::size_t number = 0;
  for (const Json& entry : fields.list("declines")) {
    const Fields reason(entry, fmt::format("{}[{}]", fields.place("declines"), number++));
    declines[reason.text("why")] += reason.count("cases");
  }
  return declines;
}

Json json_of(const PropertyTally& tally) {
  return {{"property", tally.property},
          {"statement", tally.statement},
          {"standing", word_of(standing_of(tally))},
          {"cases", tally.cases},
          {"judged", tally.judged()},
          {"held", tally.held},
          {"violated", tally.violated},
          {"vacuous", tally.vacuous},
          {"declined", tally.declined},
          {"faulted", tally.faulted},
          {"redrawn", tally.redrawn},
          {"compared", tally.compared},
          {"margin_max", number_of(tally.margin_max)},
          {"margin_case", json_of(tally.margin_case)},
          {"margin_where", tally.margin_where},
          {"declines", json_of_declines(tally)}};
}

PropertyTally read_tally(const Fields& fields) {
  return {.property = fields.text("property"),
          .statement = fields.text("statement"),
          .cases = fields.count("cases"),
          .held = fields.count("held"),
          .violated = fields.count("violated"),
          .vacuous = fields.count("vacuous"),
          .declined = fields.count("declined"),
          .faulted = fields.count("faulted"),
          .redrawn = fields.has("redrawn") ? fields.count("redrawn") : 0,
          .compared = fields.count("compared"),
          .margin_max = fields.number("margin_max"),
          .margin_case = read_case(fields, "margin_case"),
          .margin_where = read_where(fields, "margin_where"),
          .declines = read_declines(fields)};
}

Json json_of(const Run& run, const Finding& finding) {
  return {
      {"property", finding.property},        {"found", json_of(finding.found)},
      {"shrunk", json_of(finding.shrunk)},   {"shrink_steps", finding.shrink_steps},
      {"replay", replay_line(run, finding)}, {"verdict", json_of(finding.verdict)},
      {"setting", json_of(finding.setting)}, {"digest", hexadecimal(finding.digest)},
      {"version", finding.version},          {"subject_hash", hexadecimal(finding.subject_hash)}};
}

Finding read_finding_entry(const Fields& fields) {
  return {.property = fields.text("property"),
          .found = read_case(fields, "found"),
          .shrunk = read_case(fields, "shrunk"),
          .setting = read_setting(fields),
          .verdict = read_verdict(fields.object("verdict")),
          .shrink_steps = fields.count("shrink_steps"),
          .digest = read_hexadecimal(fields, "digest"),
          .version = fields.has("version") ? fields.text("version") : "",
          .subject_hash = read_hexadecimal(fields, "subject_hash")};
}

Json json_of(const Run& run) {
  const Conclusion conclusion = conclusion_of(run);
  Json json = {{"schema", kSchema},
               {"version", run.version},
               {"subject", run.subject},
               {"numerics", run.numerics},
               {"device", run.device},
               {"emulation", json_of(run.emulation)},
               {"where", run.where},
               {"seed", run.seed},
               {"seconds", number_of(run.seconds)},
               {"interrupted", run.interrupted},
               {"error", run.error},
               {"next_index", run.next_index},
               {"precision", json_of(run.precision)},
               {"conclusion", {{"exit_code", conclusion.exit_code}, {"reason", conclusion.reason}}},
               {"properties", Json::array()},
               {"power", Json::object()},
               {"features", run.features},
               {"models", run.models},
               {"findings", Json::array()}};
  for (const CounterColumn& column : kCounterColumns)
    json["counters"][std::string(column.name)] = run.counters.*column.value;
  for (const PropertyTally& tally : run.tallies) json["properties"].push_back(json_of(tally));
  for (const auto& [name, tally] : run.power) {
    json["power"][name] = {{"cases", tally.cases}, {"refused", tally.refused}};
  }
  put_sight(json, run);
  for (const Finding& finding : run.findings) json["findings"].push_back(json_of(run, finding));
  return json;
}

std::map<std::string, std::uint64_t> read_counts(const Fields& run, std::string_view name) {
  const Fields fields = run.object(name);
  std::map<std::string, std::uint64_t> counts;
  for (const auto& entry : fields.raw().items()) counts[entry.key()] = fields.count(entry.key());
  return counts;
}

Counters read_counters(const Fields& run) {
  Counters counters;
  if (!run.has("counters")) return counters;
  const Fields fields = run.object("counters");
  for (const CounterColumn& column : kCounterColumns) {
    if (fields.has(column.name)) counters.*column.value = fields.integer(column.name);
  }
  return counters;
}

}  // namespace

std::string run_json_of(const Run& run) {
  return text_of(json_of(run));
}

Run run_of_json(std::string_view text, std::string_view file_name) {
  const Json json = parse_strictly(text, file_name);
  const Fields fields(json, std::string(file_name));
  if (const auto schema = fields.count("schema"); schema != kSchema) {
    fields.refuse("schema", fmt::format("is {}; this program reads schema {}", schema, kSchema));
  }
  Run run;
  run.version = fields.text("version");
  run.subject = fields.text("subject");
  run.numerics = fields.text("numerics");
  run.device = fields.text("device");
  run.emulation = read_emulation(fields);
  if (fields.has("where")) run.where = fields.text("where");
  run.seed = fields.count("seed");
  run.seconds = fields.number("seconds");
  run.interrupted = fields.flag("interrupted");
  run.error = fields.text("error");
  run.next_index = fields.count("next_index");
  run.precision = read_precision(fields.object("precision"));
  run.counters = read_counters(fields);
  std::size_t number = 0;
  for (const Json& entry : fields.list("properties")) {
    run.tallies.push_back(
        read_tally(Fields(entry, fmt::format("{}[{}]", fields.place("properties"), number++))));
  }
  const Fields power = fields.object("power");
  for (const auto& [name, entry] : power.raw().items()) {
    const Fields tally(entry, power.place(name));
    run.power[name] = {.refused = tally.count("refused"), .cases = tally.count("cases")};
  }
  run.features = read_counts(fields, "features");
  read_sight(fields, run);
  if (fields.has("models")) run.models = read_counts(fields, "models");
  number = 0;
  for (const Json& entry : fields.list("findings")) {
    run.findings.push_back(read_finding_entry(
        Fields(entry, fmt::format("{}[{}]", fields.place("findings"), number++))));
  }
  return run;
}

void write_run_json(const std::filesystem::path& path, const Run& run) {
  write_whole(path, run_json_of(run));
}

Run read_run_json(const std::filesystem::path& path) {
  const MappedFile file(path);
  return run_of_json({reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()},
                     path.string());
}

}  // namespace attest
