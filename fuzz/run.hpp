// Run: everything a campaign found and proved. Data only; reports/ turns it into text.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "optimized/emulator/options.hpp"
#include "reference/subject.hpp"
#include "reference/verdict.hpp"

namespace attest {

/// A verdict that is not in the subject's favour, with everything needed to see it again.
struct Finding {
  std::string property;
  Case found;                      // as drawn
  Case shrunk;                     // the smallest case found that still fails the same property
  std::optional<Setting> setting;  // under which both were run; nothing on a GPU
  Verdict verdict;                 // on `shrunk`
  std::uint64_t shrink_steps = 0;
  std::string found_why = {};      // of the verdict on `found`, with its diagnosis
  std::uint64_t digest = 0;        // of all that was returned for `shrunk`, faults aside
  std::string version = {};        // of the program that found it
  std::uint64_t subject_hash = 0;  // of the subject's file; 0: it has none
};

/// What failed once, and not again when it was put to a fresh subject: no finding.
struct Unreproduced {
  std::string property;
  Case test_case;
  std::optional<Setting> setting;
  std::string what;  // what was seen the first time
};

inline constexpr std::size_t kDeclinesMax = 20;
inline constexpr std::string_view kOtherReasons = "other reasons";

struct PropertyTally {
  std::string property, statement;
  std::uint64_t cases = 0, held = 0, violated = 0, vacuous = 0, declined = 0, faulted = 0;
  std::uint64_t redrawn = 0;   // draws that were declined, after which others were drawn instead
  std::uint64_t compared = 0;  // numbers judged
  double margin_max = 0;       // over verdicts that held
  Case margin_case;            // where it was met
  std::array<Index, 4> margin_where{};
  // Why cases and draws were declined, and how many for that reason. A reason may quote extents, so
  // only the first kDeclinesMax are kept apart; the rest count as kOtherReasons.
  std::map<std::string, std::uint64_t> declines;
  /// Cases in which something was compared, or the subject died of being asked.
  std::uint64_t judged() const { return held + violated + faulted; }
};

struct PowerTally {
  std::uint64_t refused = 0, cases = 0;  // of `cases` in which it was tried
};

/// What the bounds could have told, over cases of one kind that the subject answered.
struct SightTally {
  std::uint64_t answered = 0;   // compared, or nothing was promised of it
  std::uint64_t unbounded = 0;  // of these: of most of its numbers nothing was promised
  std::uint64_t blind = 0;      // of these: no wrong answer but zeros would have been refused
  std::uint64_t sharp = 0;      // of these: at least half of the wrong answers would have been
};

/// Cases that came to the same code by the same kind of input: operation, kernels launched, input
/// format, cache format, keys a multiple of kTileKeys or not.
struct CellTally {
  Operation operation = Operation::prefill;
  std::string kernels;  // joined by '+'; empty where unknown
  std::uint64_t cases = 0, sharp = 0;
  Case smallest;  // of those seen: what later cases are drawn alike to
};
inline constexpr Index kTileKeys = 64;

/// The least and the largest that an extent was.
struct Range {
  Index least = 0, most = 0;
};

/// What the judged cases of one operation had, beside what the subject accepts of it. Values and
/// kinds are those of properties/domains/dimensions.hpp.
struct CoveredTally {
  std::map<std::string, Range> ranges;                 // by name of the extent
  std::uint64_t values = 0, pairs = 0;                 // accepted
  std::vector<std::string> unmet_values, unmet_pairs;  // accepted, but no case had them
};

/// The widest that any precision path was, of one of its numbers.
struct WidestDeclaration {
  double size = 0;
  std::string property;
  Case test_case;
};

/// Of this program, e.g. "0.1.0".
std::string_view version();

/// Said in place of a numeric model or of a schedule: another one for every case.
inline constexpr std::string_view kDrawn = "drawn";

/// How the emulator ran, as words of a command line; means nothing on a GPU. The defaults are the
/// emulator's.
struct EmulationOptions {
  std::string numerics = emulator::print(emulator::NumericModel{});  // or kDrawn
  std::string checks = emulator::print(emulator::Checks{});
  std::optional<std::uint64_t> schedule = 0;  // nothing: drawn
  bool operator==(const EmulationOptions&) const = default;
};

struct Run {
  std::string version, subject, numerics, device;
  EmulationOptions emulation;
  std::string where;  // what of it was asked for, as typed; empty: everything
  std::uint64_t seed = 0;
  double seconds = 0;
  bool interrupted = false;      // stopped by a signal
  std::string error;             // why the testbed itself could not go on; empty: it did
  std::uint64_t next_index = 0;  // of drawn cases: where a later campaign goes on
  PrecisionPath precision;
  std::vector<PropertyTally> tallies;       // in catalogue order
  std::map<std::string, PowerTally> power;  // by wrong answer
  std::vector<Finding> findings;  // one per (property, kind of failure), first found first
  std::map<std::string, std::uint64_t> features;    // how many cases had causal, window, gqa, ...
  std::map<std::string, std::uint64_t> models;      // cases per numeric model; empty on a GPU
  std::vector<Operation> offered;                   // whose functions are there
  std::vector<Unreproduced> unreproduced;           // first seen first
  std::map<std::string, SightTally> sight;          // by operation, and by stratum of its cases
  std::map<std::string, CellTally> cells;           // by cell_of (steering.hpp)
  std::map<std::string, WidestDeclaration> widest;  // by name of the number
  std::map<Operation, CoveredTally> covered;        // of operations that are served
  Counters counters;  // of all that the subject was asked; 0 where nothing counts
  std::uint64_t cases() const;
  std::uint64_t judged() const;
};

}  // namespace attest
