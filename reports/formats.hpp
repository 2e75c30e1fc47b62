// Every text and file that a Run becomes, and the files that come back in.
// Nothing here runs a subject or judges a number: it renders, stores and reads what others found.
// All readers throw Error naming the file and the field; all writers throw Error when they cannot.
#pragma once
#include <array>
#include <cstddef>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/run.hpp"
#include "reference/oracle/certified.hpp"
#include "reference/values.hpp"

namespace attest {

// --- what a run means ---------------------------------------------------------------------------

/// 0: nothing violated and enough was proven. 1: the subject is wrong. 2: the testbed could not
/// tell. `reason` is one sentence for the last line of a run.
struct Conclusion {
  int exit_code = 2;
  std::string reason;
};
Conclusion conclusion_of(const Run& run);
int exit_code_of(const Run& run);

/// The exact command that shows the finding again, quoted for a shell. Run::subject must hold
/// what --subject was given (a path or a name); when it is empty the option is left out. What the
/// emulator does by default is left out too, unless it was drawn.
std::string replay_line(const Run& run, const Finding& finding);
std::string replay_line(std::string_view subject, std::string_view property, const Case& test_case,
                        const EmulationOptions& emulation = {}, bool drawn = false);

// --- a run as text ------------------------------------------------------------------------------

/// run.json: the whole Run; schema 1 is documented in README.md. read(write(x)) == x.
std::string run_json_of(const Run& run);
Run run_of_json(std::string_view text, std::string_view file_name);
void write_run_json(const std::filesystem::path& path, const Run& run);
Run read_run_json(const std::filesystem::path& path);

/// junit.xml: one testcase per property.
std::string junit_of(const Run& run);
void write_junit(const std::filesystem::path& path, const Run& run);

/// summary.md: for a pull request's page.
std::string summary_of(const Run& run);
void write_summary(const std::filesystem::path& path, const Run& run);

/// What write_reports leaves in its folder.
inline constexpr std::array<const char*, 3> kReportFiles{"run.json", "junit.xml", "summary.md"};
/// All three, under their usual names, into `folder` (made when it is not there). A reader never
/// sees half a file: each is written beside and then renamed.
void write_reports(const std::filesystem::path& folder, const Run& run);
/// Throws Error now rather than at the end of a long run when `folder` cannot be written.
void require_writable_folder(const std::filesystem::path& folder);

/// Keeps other runs out of a report folder while it lives: two would mix their findings. Throws
/// Error when another has it. Nothing remains of a process that was killed.
class FolderLock {
 public:
  explicit FolderLock(const std::filesystem::path& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  int descriptor_;
};

struct TableStyle {
  int columns = 100;  // at least 60
  bool colour = false;
};
/// The terminal's width, and colour unless NO_COLOR is set or the terminal knows none (TERM=dumb);
/// 100 plain columns for a file or pipe.
TableStyle style_of(std::FILE* out);
/// As many as a line may have before it wraps, at least 2; no table is that narrow.
std::size_t columns_of(std::FILE* out);
/// A terminal on which a line can be drawn over.
bool draws_lines_again(std::FILE* out);
std::string table_of(const Run& run, const TableStyle& style);
void print_table(std::FILE* out, const Run& run, const TableStyle& style);

/// A bar that redraws itself on a terminal; elsewhere one plain line at most every ten seconds.
class Progress {
 public:
  explicit Progress(std::FILE* out);
  ~Progress();  // clears the bar
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void update(const Run& so_far, double share_done);
  /// The same for what is no Run; `state` says how far it is.
  void update(std::string_view state, double share_done);
  /// A line above the bar, whole, flushed.
  void line(std::string_view text);
  void finish();

 private:
  void clear();
  std::FILE* out_;
  bool terminal_;
  bool drawn_ = false;
  double last_seconds_ = -1;
};

// --- tensors of anybody's -----------------------------------------------------------------------

/// What a safetensors file holds. `problem` follows from the file's metadata (key "problem", a case
/// line without fill and seed), from the shapes, and from which tensors are there.
struct TensorsFile {
  Problem problem;
  Values values;
  std::vector<std::string> names;             // present, in the file's order
  std::optional<std::vector<double>> o, lse;  // somebody's answer, (batch, head, row, column)
  std::optional<std::string> precision;       // the metadata's entry: how the answer was rounded
  bool rows_before_heads = false;             // of q, k, v and o in the file: (b, t, h, d)
  bool axes_said = true;  // by the file or by words, or there are no heads that could be confused
};
/// `problem_line` (may be empty) holds words of a case line and overrides the metadata. Extents
/// need not be said: they follow from the shapes; said, they must agree.
TensorsFile read_tensors_file(const std::filesystem::path& path, std::string_view problem_line);
/// The same, of bytes that are there already; `file_name` is for messages.
TensorsFile read_tensors(std::span<const std::byte> bytes, const std::string& file_name,
                         std::string_view problem_line);
void write_tensors_file(const std::filesystem::path& path, const Problem& problem,
                        const Values& values);
/// What `file` holds of what went in, and the truth: as o and lse, rounded to the Problem's output
/// format and to f32, so that the file can be judged; and as F64, o_truth and lse_truth with their
/// tails. The certified digits are in the metadata. Axes are in the order of `file`.
void write_truth_file(const std::filesystem::path& path, const TensorsFile& file,
                      const Truth& truth, int digits);
/// The same with the proven radii, o_radius and lse_radius, and tiers_text in the metadata.
void write_truth_file(const std::filesystem::path& path, const TensorsFile& file,
                      const Certified& certified);

// --- a finding kept as a folder -----------------------------------------------------------------

/// `values` are those of finding.shrunk. Writes case.txt, tensors.safetensors and verdict.json into
/// a folder below `folder` whose name follows from property and case, and returns its path. The
/// folder appears whole or not at all.
std::filesystem::path write_finding(const std::filesystem::path& folder, const Finding& finding,
                                    const Values& values, std::string_view subject,
                                    std::string_view replay,
                                    const EmulationOptions& emulation = {});
struct StoredFinding {
  std::string property, subject, replay;
  EmulationOptions emulation;  // under which it was found
  Case test_case;              // the shrunk one
  Values values;               // from tensors.safetensors: what was run, even if fills change
  Verdict verdict;
  // As in Finding; unknown in findings of earlier versions.
  std::uint64_t digest = 0;
  std::string version;
  std::uint64_t subject_hash = 0;
};
/// Of the bytes of a subject's file; 0 where it cannot be read.
std::uint64_t subject_hash_of(const std::filesystem::path& plugin);
StoredFinding read_finding(const std::filesystem::path& folder);

}  // namespace attest
