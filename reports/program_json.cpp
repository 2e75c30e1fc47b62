// program.json: what `attest run` saw, for machines. The schema is documented in README.md.
#include "reports/program_record.hpp"
#include "reports/strict_json.hpp"

namespace attest {
namespace {

using Json = nlohmann::json;

constexpr std::uint64_t kSchema = 1;

Json json_of(const ProgramFinding& finding, const ProcessRecord& process) {
  return {{"kind", finding.kind},      {"kernel", finding.kernel},
          {"block", finding.block},    {"thread", finding.thread},
          {"file", finding.file},      {"line", finding.line == 0 ? Json() : Json(finding.line)},
          {"what", finding.what},      {"process", process.process},
          {"options", process.options}};
}

Json json_of(const ProcessRecord& process) {
  Json obstacles = Json::array();
  for (const Obstacle& obstacle : process.obstacles) {
    obstacles.push_back({{"kind", obstacle.kind}, {"what", obstacle.what}});
  }
  return {{"process", process.process}, {"parent", process.parent}, {"command", process.command},
          {"options", process.options}, {"ended", process.ended},   {"died", process.died},
          {"obstacles", obstacles}};
}

Json json_of(const emulator::Totals& totals) {
  Json json = Json::object();
  for (const emulator::TotalColumn& column : emulator::total_columns()) {
    json[std::string(column.name)] = totals.*column.value;
  }
  return json;
}

Json json_of(const emulator::KernelProfile& kernel) {
  Json lines = Json::array();
  for (const emulator::LineProfile& line : kernel.lines) {
    lines.push_back({{"place", line.place}, {"totals", json_of(line.totals)}});
  }
  return {{"kernel", kernel.kernel},
          {"launches", kernel.launches},
          {"blocks", kernel.blocks},
          {"blocks_covered", kernel.blocks_covered},
          {"grid_blocks", kernel.grid_blocks},
          {"block_threads", kernel.block_threads},
          {"block_shared_bytes", kernel.block_shared_bytes},
          {"totals", json_of(kernel.totals)},
          {"lines", lines}};
}

}  // namespace

std::string json_of(const ProgramRun& run) {
  const ProgramConclusion conclusion = conclusion_of(run);
  Json findings = Json::array(), kernels = Json::array(), processes = Json::array();
  for (const ProcessRecord& process : run.processes) {
    processes.push_back(json_of(process));
    for (const ProgramFinding& finding : process.findings) {
      findings.push_back(json_of(finding, process));
    }
  }
  for (const KernelCounts& counts : kernels_of(run)) {
    kernels.push_back({{"kernel", counts.kernel},
                       {"launches", counts.launches},
                       {"warp_instructions", counts.warp_instructions}});
  }
  Json profile = Json::array();
  for (const emulator::KernelProfile& kernel : profile_of(run)) profile.push_back(json_of(kernel));
  return text_of(Json{
      {"schema", kSchema},
      {"version", run.version},
      {"command", run.command},
      {"numerics", run.numerics},
      {"checks", run.checks},
      {"schedule", run.schedule},
      {"schedules", run.schedules},
      {"seconds", number_of(run.seconds)},
      {"program", {{"exit_code", run.end.exit_code}, {"signal", run.end.signal}}},
      {"conclusion", {{"exit_code", conclusion.exit_code}, {"reason", conclusion.reason}}},
      {"findings", findings},
      {"kernels", kernels},
      {"profile", profile},
      {"processes", processes},
  });
}

}  // namespace attest
