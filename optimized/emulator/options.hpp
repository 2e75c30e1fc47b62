// How the emulator runs: which checkers, which arithmetic where PTX leaves it open, which legal
// order. Travels as one line of text: through attest_emulator_configure, and in the environment
// variable ATTEST_EMULATOR of a program that runs by itself. Knows nothing of the engine.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace attest::emulator {

/// Barriers, member masks and deadlocks are always checked: nothing sensible could run on.
struct Checks {
  bool memcheck = true;
  bool initcheck = true;
  bool racecheck = true;
  bool operator==(const Checks&) const = default;
};

/// How mma adds up: as the tensor cores of one architecture do, bit for bit, or `f32`: fused
/// multiply-adds in order of k. The constants of each are in engine/tensor/.
enum class TensorModel : std::uint8_t { f32, sm_70, sm_75, sm_80, sm_89, sm_90, sm_100, sm_120 };

/// Arithmetic that PTX leaves open. Without `worst`, approximate instructions round correctly; with
/// it they err within their documented error, by a function of the seed and of their operands.
struct NumericModel {
  TensorModel tensor = TensorModel::sm_80;
  std::optional<std::uint64_t> worst;
  bool operator==(const NumericModel&) const = default;
};

struct DeviceOptions {
  unsigned threads = 1;  // host threads over which blocks are spread; changes no result
  Checks checks;
  NumericModel numerics;
  /// 0: the strictest order for progress. Any other seed: another legal order of blocks, warps,
  /// lanes that parted, and arrivals of asynchronous copies.
  std::uint64_t schedule = 0;
  std::uint64_t instruction_limit = 0;  // warp instructions per launch; 0: none
  bool counters = false;                // count per instruction (Device::profile)
  bool operator==(const DeviceOptions&) const = default;
};

/// A name that an option takes, and what it means.
struct OptionName {
  std::string_view name, what;
};
std::vector<OptionName> numeric_models();
std::vector<OptionName> checkers();

/// "sm_90", "f32", "sm_80+worst:7". "worst:7" alone is the seed with an architecture it draws, from
/// sm_80 on: older ones lack instructions that today's kernels are made of.
std::string print(const NumericModel& model);
/// Empty when `text` spells no model; `problem` then says what is wrong and lists what there is.
std::optional<NumericModel> parse_numerics(std::string_view text, std::string& problem);

/// "memcheck,initcheck", or "none".
std::string print(const Checks& checks);
std::optional<Checks> parse_checks(std::string_view text, std::string& problem);

/// "threads=1 checks=memcheck,initcheck,racecheck numerics=sm_80 schedule=0 limit=0 counters=0"
std::string print(const DeviceOptions& options);
/// Words that are absent keep their default.
std::optional<DeviceOptions> parse_options(std::string_view text, std::string& problem);

}  // namespace attest::emulator
