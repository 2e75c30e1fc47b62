// A finding as a folder: case.txt for a person, tensors.safetensors for any tool, verdict.json for
// machines. It appears under its name only when it is complete.
#include <fmt/format.h>
#include <unistd.h>

#include <cstdint>
#include <string>
#include <system_error>

#include "reference/fnv.hpp"
#include "reference/text.hpp"
#include "reports/finding_json.hpp"
#include "reports/formats.hpp"
#include "reports/safetensors.hpp"
#include "reports/verdict_json.hpp"

namespace attest {
namespace {

constexpr std::uint64_t kSchema = 1;

}  // namespace

std::filesystem::path write_finding(const std::filesystem::path& folder, const Finding& finding,
                                    const Values& values, std::string_view subject,
                                    std::string_view replay, const EmulationOptions& emulation) {
  const std::string line = print(finding.shrunk);
  const auto path = folder / fmt::format("{}-{:016x}", finding.property, fnv_of(line));
  auto beside = path;
  beside += fmt::format(".{}.part", ::getpid());
  require_writable_folder(beside);
  write_whole(beside / "case.txt", line + "\n");
  write_tensors_file(beside / "tensors.safetensors", finding.shrunk.problem, values);
  const nlohmann::json json = {{"schema", kSchema},
                               {"property", finding.property},
                               {"subject", subject},
                               {"emulation", json_of(emulation)},
                               {"case", line},
                               {"found_as", print(finding.found)},
                               {"shrink_steps", finding.shrink_steps},
                               {"verdict", json_of(finding.verdict)},
                               {"digest", hexadecimal(finding.digest)},
                               {"version", finding.version},
                               {"subject_hash", hexadecimal(finding.subject_hash)},
                               {"replay", replay}};
  write_whole(beside / "verdict.json", text_of(json));
  std::error_code problem;
  std::filesystem::remove_all(path, problem);  // the same finding of an earlier run
  std::filesystem::rename(beside, path, problem);
  if (problem)
    throw Error(fmt::format("{}: cannot be written: {}", path.string(), problem.message()));
  return path;
}

StoredFinding finding_of_json(std::string_view text, const std::string& file_name) {
  const auto json = parse_strictly(text, file_name);
  const Fields fields(json, file_name);
  if (const auto schema = fields.count("schema"); schema != kSchema) {
    fields.refuse("schema", fmt::format("is {}; this program reads schema {}", schema, kSchema));
  }
  StoredFinding finding;
  finding.property = fields.text("property");
  finding.subject = fields.text("subject");
  finding.replay = fields.text("replay");
  finding.emulation = read_emulation(fields);
  finding.verdict = read_verdict(fields.object("verdict"));
  finding.digest = read_hexadecimal(fields, "digest");
  if (fields.has("version")) finding.version = fields.text("version");
  finding.subject_hash = read_hexadecimal(fields, "subject_hash");
  try {
    finding.test_case = parse_case(fields.text("case"));
  } catch (const Error& error) {
    throw Error(fmt::format("{}: {}", fields.place("case"), error.what()));
  }
  return finding;
}

StoredFinding read_finding(const std::filesystem::path& folder) {
  const auto path = folder / "verdict.json";
  const MappedFile file(path);
  StoredFinding finding = finding_of_json(
      {reinterpret_cast<const char*>(file.bytes().data()), file.bytes().size()}, path.string());
  const auto tensors = folder / "tensors.safetensors";
  TensorsFile stored = read_tensors_file(tensors, "");
  if (!(stored.problem == finding.test_case.problem)) {
    throw Error(fmt::format("{}: holds tensors of \"{}\", but {} says \"{}\"", tensors.string(),
                            print(stored.problem), path.string(),
                            print(finding.test_case.problem)));
  }
  finding.values = std::move(stored.values);
  return finding;
}

}  // namespace attest
