// The commands of the program: each takes what the command line said, prints, and returns the exit
// code. They throw Error for what the user can put right; main turns that into one line and exit 2.
// Nothing here parses a command line.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "fuzz/run.hpp"
#include "reference/problem.hpp"

namespace attest {

struct SubjectOptions {
  std::string subject = "ours";  // a path, or a name of `attest list subjects` or of a mutant
  std::string device = "auto";   // auto, cuda, emulated
  double case_seconds = 20;      // WorkerOptions::case_seconds
  EmulationOptions emulation;
};

/// Why `word` is no count, or empty: unsigned numbers would take -1 for a very large one.
std::string count_error(const std::string& word);
/// Also of 0.
std::string positive_error(const std::string& word);

/// The same of a word that may also be kDrawn.
std::string schedule_error(const std::string& word);

/// What gate and fuzz share.
struct CampaignCommand {
  SubjectOptions subject = {.emulation = {.numerics = std::string(kDrawn)}};
  std::string schedule{kDrawn};  // or a count, which subject.emulation.schedule then is
  std::uint64_t seed = 1;
  std::string budget;  // "45s", "10m", "1h"; empty: none
  std::optional<std::uint64_t> cases;
  unsigned threads = std::thread::hardware_concurrency();
  std::vector<std::string> properties;  // empty: all
  std::string where;                    // attributes that a case must have; empty: any
  std::string report = "attest-report";
  std::string corpus = "attest-corpus";  // fuzz: findings join it, and its place is kept there
};
/// Cases of a gate that is given neither --budget nor --cases.
inline constexpr std::uint64_t kGateCases = 2400;
int gate(const CampaignCommand& options);
int fuzz(const CampaignCommand& options);

struct ReplayOptions {
  std::string what;  // a case line, a safetensors file, or the folder of a finding
  std::string property;
  std::string problem;                 // words of a case line, for a safetensors file
  std::optional<std::string> subject;  // absent: that of the finding, or ours
  std::string device = "auto";
  double case_seconds = 20;
  // Absent: as the finding was found, or the defaults.
  std::optional<std::string> numerics, checks;
  std::optional<std::uint64_t> schedule;
};
int replay(const ReplayOptions& options);

struct CompareOptions {
  SubjectOptions subject;  // its device is compared with the emulator
  std::uint64_t seed = 1;
  std::uint64_t cases = 300;  // at least 1
  std::string out;            // a file of JSON; empty: none
};
int compare(const CompareOptions& options);

struct OracleOptions {
  std::string what;     // a case line or a safetensors file
  std::string problem;  // words of a case line, for a safetensors file
  std::string out = "oracle.safetensors";
  int digits = 0;  // 50 or 100; 0: as many as a proven radius takes
};
int oracle(const OracleOptions& options);

struct JudgeOptions {
  std::string what;     // a safetensors file that holds o or lse, and what they were computed from
  std::string problem;  // words of a case line
  std::string path;     // a precision line; empty: the file's own
  std::string json, out;                     // files; empty: none
  std::optional<std::uint64_t> rows, heads;  // so many of each head, and so many; nothing: all
  std::uint64_t seed = 1;                    // which
};
int judge(const JudgeOptions& options);

struct MeasureCommand {
  SubjectOptions subject = {.case_seconds = 60, .emulation = {.checks = "none"}};
  // Errors over a grid.
  std::uint64_t schedule = 0;
  std::vector<std::string> lengths = {"64", "512", "2048"}, widths = {"64", "128"};
  std::vector<std::string> formats = {"bf16", "f16", "f32"};
  std::vector<std::string> outputs;  // empty: each as its input
  std::vector<std::string> fills = {"normal", "one_signed"};
  std::string operation;           // prefill or decode; empty: prefill, or what a case asks for
  std::uint64_t rows = 128;        // query rows of a cell
  std::string problem = "causal";  // words of a case line, for every cell
  std::vector<std::string> cases;  // "[OPERATION] CASE-LINE"; not empty: these instead of a grid
  std::uint64_t seed = 1;
  unsigned threads = std::thread::hardware_concurrency();
  std::string json;     // a file to write; empty: none
  std::string compare;  // a measurement.json to compare with; empty: none
  // What calls cost.
  bool cost = false;
  std::vector<std::string> calls;  // "OPERATION CASE-LINE"; empty: a list of usual ones
};
/// Errors, or with `cost` what calls cost.
int measure(const MeasureCommand& options);
int measure_errors(const MeasureCommand& options);

struct FootprintOptions {
  Index layers = 1, num_heads_kv = 1, head_dim = 1, tokens = 1, batch = 1;
  std::optional<Index> head_dim_v;  // absent: head_dim
  std::string format = "f16";
};
int footprint(const FootprintOptions& options);

/// An endless kernel of `attest run` is stopped after as many instructions as a core that other
/// work shares executes in a minute; at 2^25 a second, the rate a gate's time limit rests on too.
inline constexpr std::uint64_t kRunLimit = 60 * (std::uint64_t{1} << 25);
struct RunCommand {
  std::vector<std::string> program;  // and its arguments
  EmulationOptions emulation;
  std::uint64_t schedule = 0, schedules = 1;
  unsigned threads = std::thread::hardware_concurrency();
  std::uint64_t limit = kRunLimit;  // warp instructions per launch; 0: none
  bool counters = false;
  std::string json, report;  // a file and a folder; empty: none
};
int run(const RunCommand& options);

/// A section of list.cpp; empty: all of them.
int list(const std::string& what);

/// The version, and the first words of every run.
std::string version_text();

/// The end of `attest --help`.
std::string examples_text();

}  // namespace attest
