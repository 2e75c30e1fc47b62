// measurement.json, schema 1: a Measurement as JSON and back. The schema is documented in
// README.md.
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "reference/text.hpp"
#include "reports/formats.hpp"
#include "reports/measurement.hpp"
#include "reports/safetensors.hpp"
#include "reports/strict_json.hpp"
#include "reports/verdict_json.hpp"

namespace attest {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kSchema = 1;
constexpr Index kElementsMax = Index{1} << 53;  // counts beyond are no counts

Json json_of(const Quantiles& quantiles) {
  return {number_of(quantiles.median), number_of(quantiles.ninth_decile),
          number_of(quantiles.last_percentile), number_of(quantiles.largest)};
}

double read_number(const Json& value, const Fields& fields, std::string_view name) {
  // What Fields makes of one member, it makes of an element too.
  const Json object{{"number", value}};
  try {
    return Fields(object, "").number("number");
  } catch (const Error&) {
    fields.refuse(name, R"(should list numbers, "nan", "inf" or "-inf")");
  }
}

std::vector<double> read_numbers(const Fields& fields, std::string_view name) {
  std::vector<double> numbers;
  for (const Json& value : fields.list(name)) numbers.push_back(read_number(value, fields, name));
  return numbers;
}

Quantiles read_quantiles(const Fields& fields, std::string_view name) {
  const std::vector<double> numbers = read_numbers(fields, name);
  if (numbers.size() != 4) fields.refuse(name, "should list four numbers");
  return {numbers[0], numbers[1], numbers[2], numbers[3]};
}

Index read_index(const Fields& fields, std::string_view name) {
  const std::int64_t number = fields.integer(name);
  if (number < 0 || number > kElementsMax) fields.refuse(name, "is no count");
  return number;
}

Json json_of(const RowMean& mean) {
  return {{"mean", number_of(mean.mean)}, {"error", number_of(mean.error)}};
}

RowMean read_mean(const Fields& fields) {
  return {fields.number("mean"), fields.number("error")};
}

Json json_of(const Standardised& z) {
  return {{"total", number_of(z.total)},
          {"mean", number_of(z.mean)},
          {"deviation", number_of(z.deviation)},
          {"largest", number_of(z.largest)}};
}

Standardised read_standardised(const Fields& fields) {
  return {fields.number("total"), fields.number("mean"), fields.number("deviation"),
          fields.number("largest")};
}

Json json_of(const std::vector<ZAlarm>& alarms) {
  Json list = Json::array();
  for (const ZAlarm& alarm : alarms) {
    list.push_back({{"test", alarm.test},
                    {"found", number_of(alarm.found)},
                    {"limit", number_of(alarm.limit)}});
  }
  return list;
}

std::vector<ZAlarm> read_alarms(const Fields& fields) {
  std::vector<ZAlarm> alarms;
  std::size_t number = 0;
  for (const Json& entry : fields.list("alarms")) {
    const Fields alarm(entry, fmt::format("{}[{}]", fields.place("alarms"), number++));
    alarms.push_back({alarm.text("test"), alarm.number("found"), alarm.number("limit")});
  }
  return alarms;
}

/// The members of ZSummary that are of one direction, in the order of the names.
constexpr std::array kAlong = {&ZSummary::inward, &ZSummary::offset, &ZSummary::scattered,
                               &ZSummary::sharper, &ZSummary::others};
static_assert(kAlong.size() == statistics::kDirections);

Json json_of(const ZSummary& z) {
  Json json = {{"rows", z.rows},
               {"elements", z.elements},
               {"chi_square", number_of(z.chi_square)},
               {"chi_square_error", number_of(z.chi_square_error)},
               {"largest", number_of(z.largest)},
               {"alarms", json_of(z.alarms)},
               {"false_alarm", number_of(z.false_alarm)},
               {"least_bias", Json::object()},
               {"least_growth", number_of(z.least_growth)}};
  for (std::size_t i = 0; i < kAlong.size(); ++i) {
    json[std::string(statistics::kDirectionNames[i])] = json_of(z.*kAlong[i]);
  }
  for (std::size_t i = 0; i < statistics::kBiases; ++i) {
    json["least_bias"][std::string(statistics::kBiasNames[i])] = number_of(z.least_bias[i]);
  }
  return json;
}

ZSummary read_z(const Fields& fields) {
  ZSummary z;
  z.rows = read_index(fields, "rows");
  z.elements = read_index(fields, "elements");
  z.chi_square = fields.number("chi_square");
  z.chi_square_error = fields.number("chi_square_error");
  z.largest = fields.number("largest");
  z.alarms = read_alarms(fields);
  z.false_alarm = fields.number("false_alarm");
  z.least_growth = fields.number("least_growth");
  for (std::size_t i = 0; i < kAlong.size(); ++i) {
    z.*kAlong[i] = read_standardised(fields.object(statistics::kDirectionNames[i]));
  }
  const Fields least = fields.object("least_bias");
  for (std::size_t i = 0; i < statistics::kBiases; ++i) {
    z.least_bias[i] = least.number(statistics::kBiasNames[i]);
  }
  return z;
}

Json json_of(const ErrorSummary& errors) {
  return {{"rows", errors.rows},
          {"elements", errors.elements},
          {"unjudged", errors.unjudged},
          {"correct", errors.correct},
          {"ulp", json_of(errors.ulp)},
          {"relative", json_of(errors.relative)},
          {"offset", json_of(errors.offset)},
          {"inward", json_of(errors.inward)},
          {"square", json_of(errors.square)},
          {"margin", number_of(errors.margin)},
          {"z", errors.z ? json_of(*errors.z) : Json()},
          {"uncalibrated", errors.uncalibrated}};
}

ErrorSummary read_errors(const Fields& fields) {
  ErrorSummary errors{.rows = read_index(fields, "rows"),
                      .elements = read_index(fields, "elements"),
                      .unjudged = read_index(fields, "unjudged"),
                      .correct = read_index(fields, "correct"),
                      .ulp = read_quantiles(fields, "ulp"),
                      .relative = read_quantiles(fields, "relative"),
                      .offset = read_mean(fields.object("offset")),
                      .inward = read_mean(fields.object("inward")),
                      .square = read_mean(fields.object("square")),
                      .margin = fields.number("margin"),
                      .z = {},
                      .uncalibrated = fields.text("uncalibrated")};
  if (!fields.at("z").is_null()) errors.z = read_z(fields.object("z"));
  return errors;
}

Json json_of(const BoundUses& uses) {
  Json json = Json::object();
  for (std::size_t i = 0; i < uses.size(); ++i) {
    json[std::string(kStrengthNames[i])] = {{"elements", uses[i].elements},
                                            {"median", number_of(uses[i].median)},
                                            {"largest", number_of(uses[i].largest)},
                                            {"where", uses[i].where}};
  }
  return json;
}

BoundUses read_uses(const Fields& fields) {
  BoundUses uses;
  for (std::size_t i = 0; i < uses.size(); ++i) {
    const Fields use = fields.object(kStrengthNames[i]);
    uses[i] = {.elements = use.count("elements"),
               .median = use.number("median"),
               .largest = use.number("largest"),
               .where = read_where(use, "where")};
  }
  return uses;
}

Json json_of(const std::vector<double>& numbers) {
  Json list = Json::array();
  for (const double number : numbers) list.push_back(number_of(number));
  return list;
}

Json json_of(const RowFigures& rows) {
  return {{"square", json_of(rows.square)},
          {"inward", json_of(rows.inward)},
          {"margin", json_of(rows.margin)}};
}

RowFigures read_rows(const Fields& fields) {
  RowFigures rows{read_numbers(fields, "square"), read_numbers(fields, "inward"),
                  read_numbers(fields, "margin")};
  if (rows.inward.size() != rows.square.size() || rows.margin.size() != rows.square.size()) {
    fields.refuse("square", "should be as long as inward and margin");
  }
  return rows;
}

Json json_of(const ErrorSize& size) {
  return {
      {"rms", number_of(size.rms)}, {"mean", number_of(size.mean)}, {"ulps", number_of(size.ulps)}};
}

ErrorSize read_size(const Fields& fields) {
  return {fields.number("rms"), fields.number("mean"), fields.number("ulps")};
}

Json json_of(const Attribution& attribution) {
  Json json = {{"elements", attribution.elements},
               {"o_rms", number_of(attribution.o_rms)},
               {"total", json_of(attribution.total)}};
  for (std::size_t i = 0; i < kStageNames.size(); ++i) {
    const StageError& stage = attribution.stages[i];
    json[std::string(kStageNames[i])] = {{"share", number_of(stage.share)},
                                         {"remains", json_of(stage.remains)},
                                         {"vanishes", json_of(stage.vanishes)}};
  }
  return json;
}

std::optional<Attribution> read_stages(const Fields& cell) {
  if (cell.at("stages").is_null()) return std::nullopt;
  const Fields fields = cell.object("stages");
  Attribution attribution;
  attribution.elements = read_index(fields, "elements");
  attribution.o_rms = fields.number("o_rms");
  attribution.total = read_size(fields.object("total"));
  for (std::size_t i = 0; i < kStageNames.size(); ++i) {
    const Fields stage = fields.object(kStageNames[i]);
    attribution.stages[i] = {.vanishes = read_size(stage.object("vanishes")),
                             .remains = read_size(stage.object("remains")),
                             .share = stage.number("share")};
  }
  return attribution;
}

Json json_of_tiers(const Cell& cell) {
  Json json = Json::object();
  for (std::size_t i = 0; i < kTierNames.size(); ++i) {
    json[std::string(kTierNames[i])] = cell.tiers[i];
  }
  return json;
}

Json json_of(const Cell& cell) {
  return {{"operation", name_of(cell.operation)},
          {"case", print(cell.test_case)},
          {"verdict", json_of(cell.verdict)},
          {"o", json_of(cell.o)},
          {"lse", json_of(cell.lse)},
          {"o_to_rms", json_of(cell.o_to_rms)},
          {"o_bounds", json_of(cell.o_bounds)},
          {"lse_bounds", json_of(cell.lse_bounds)},
          {"tiers", json_of_tiers(cell)},
          {"stages", cell.stages ? json_of(*cell.stages) : Json()},
          {"rows", json_of(cell.rows)}};
}

Operation read_operation(const Fields& fields) {
  const std::string word = fields.text("operation");
  for (const Operation operation : {Operation::prefill, Operation::decode}) {
    if (name_of(operation) == word) return operation;
  }
  fields.refuse("operation", fmt::format("\"{}\" is not measured; prefill and decode are", word));
}

Cell read_cell(const Fields& fields) {
  Cell cell{.operation = read_operation(fields),
            .test_case = {},
            .verdict = read_verdict(fields.object("verdict")),
            .o = read_errors(fields.object("o")),
            .lse = read_errors(fields.object("lse")),
            .o_to_rms = read_quantiles(fields, "o_to_rms"),
            .o_bounds = read_uses(fields.object("o_bounds")),
            .lse_bounds = read_uses(fields.object("lse_bounds")),
            .tiers = {},
            .stages = read_stages(fields),
            .rows = read_rows(fields.object("rows"))};
  const Fields tiers = fields.object("tiers");
  for (std::size_t i = 0; i < kTierNames.size(); ++i) {
    cell.tiers[i] = read_index(tiers, kTierNames[i]);
  }
  try {
    cell.test_case = parse_case(fields.text("case"));
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}", fields.place("case"), error.what()));
  }
  return cell;
}

}  // namespace

std::string measurement_json_of(const Measurement& measurement) {
  const MeasurementEnd end = end_of(measurement);
  Json json = {{"schema", kSchema},
               {"version", measurement.version},
               {"subject", measurement.subject},
               {"numerics", measurement.numerics},
               {"device", measurement.device},
               {"emulation", json_of(measurement.emulation)},
               {"seed", measurement.seed},
               {"seconds", number_of(measurement.seconds)},
               {"conclusion", {{"exit_code", end.exit_code}, {"reason", end.reason}}},
               {"cells", Json::array()}};
  for (const Cell& cell : measurement.cells) json["cells"].push_back(json_of(cell));
  return text_of(json);
}

Measurement measurement_of_json(std::string_view text, std::string_view file_name) {
  const Json json = parse_strictly(text, file_name);
  const Fields fields(json, std::string(file_name));
  if (const auto schema = fields.count("schema"); schema != kSchema) {
    fields.refuse("schema", fmt::format("is {}; this program reads schema {}", schema, kSchema));
  }
  Measurement measurement{.version = fields.text("version"),
                          .subject = fields.text("subject"),
                          .numerics = fields.text("numerics"),
                          .device = fields.text("device"),
                          .emulation = read_emulation(fields),
                          .seed = fields.count("seed"),
                          .seconds = fields.number("seconds"),
                          .cells = {}};
  std::size_t number = 0;
  for (const Json& entry : fields.list("cells")) {
    measurement.cells.push_back(
        read_cell(Fields(entry, fmt::format("{}[{}]", fields.place("cells"), number++))));
  }
  return measurement;
}

Measurement read_measurement(const std::filesystem::path& path) {
  const MappedFile file(path);
  return measurement_of_json(
      {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()}, path.string());
}

}  // namespace attest
