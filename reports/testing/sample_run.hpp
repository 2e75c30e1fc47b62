// A small Run with one of everything, for the tests of this folder: texts that would break a
// careless renderer, numbers that JSON cannot spell, every standing a property can have.
#pragma once
#include <limits>

#include "fuzz/run.hpp"
#include "reference/text.hpp"

namespace attest {

inline PropertyTally sample_tally(const char* property, const char* statement, std::uint64_t cases,
                                  std::uint64_t vacuous, std::uint64_t declined,
                                  std::uint64_t failed) {
  PropertyTally tally;
  tally.property = property;
  tally.statement = statement;
  tally.cases = cases;
  tally.vacuous = vacuous;
  tally.declined = declined;
  tally.violated = failed / 2;
  tally.faulted = failed - tally.violated;
  tally.held = cases - vacuous - declined - failed;
  tally.compared = 100 * tally.held;
  return tally;
}

inline std::vector<Finding> sample_findings() {
  Finding violated;
  violated.property = "causality";
  violated.found = parse_case("q=2x4x33x64 kv=2x65x64 causal seed=77");
  violated.shrunk = parse_case("q=1x1x1x1 kv=1x2x1 causal align=top_left seed=77");
  violated.shrink_steps = 17;
  violated.setting = Setting{"sm_120", 5};
  violated.digest = 0xfedcba9876543210;
  violated.version = "0.1.0";
  violated.subject_hash = 17;
  violated.verdict.outcome = Outcome::violated;
  violated.verdict.error = 0.25;
  violated.verdict.margin = std::numeric_limits<double>::infinity();
  violated.verdict.where = {0, 1, 2, 3};
  violated.verdict.compared = 64;
  violated.verdict.why = "row 2 moved: <0.5> became \"0.75\" & more";
  violated.verdict.power = {{"leaks_one_key", true}};
  Finding faulted;
  faulted.property = "causality";
  faulted.found = faulted.shrunk = parse_case("q=1x2x5x64 kv=1x7x32 in=f16 causal");
  faulted.verdict.outcome = Outcome::faulted;
  faulted.verdict.error = std::numeric_limits<double>::quiet_NaN();
  faulted.verdict.why =
      "memcheck: kernel `flash|x`, thread 3: \x01 read at 0x7f\xff\n1 byte behind";
  return {violated, faulted};
}

inline Run sample_run() {
  Run run;
  run.version = "0.1.0 (abc1234)";
  run.subject = "plugins/it's mine.so";
  run.numerics = "emulated: sm_80";
  run.device = "emulated";
  run.emulation = {"sm_90+worst:3", "memcheck,initcheck", 77};
  run.where = "in=f16 seqlen_kv=1..64";
  run.seed = 18446744073709551615U;
  run.seconds = 12.5;
  run.next_index = 42;
  run.precision.p_format = Format::bf16;
  run.precision.exp_error = 0x1p-22;
  run.precision.keys_per_rescale = 64;
  run.precision.tensor_step = 8;
  run.precision.kv_blocks_descending = true;
  run.precision.split_size = kPowerOfTwoSplits;
  run.tallies = {
      sample_tally("oracle_agreement", "O and LSE lie within the bound around the truth.", 1200, 3,
                   7, 0),
      sample_tally("causality", "A row does not depend on keys it cannot see.", 10, 0, 0, 2),
      sample_tally("cached_equals_recomputed", "Any split of a sequence gives the same.", 5, 0, 5,
                   0),
      sample_tally("variance_scaling", "Scores of unit inputs have unit variance.", 4, 4, 0, 0)};
  run.tallies[0].margin_max = 0.7312345;
  run.tallies[0].margin_case =
      parse_case("q=1x2x5x64 kv=1x7x32 in=f16 out=f16 causal fill=sink seed=9");
  run.tallies[0].margin_where = {0, 1, 4, 31};
  run.tallies[0].declines = {{"prefill: softcap | sinks are not built", 5},
                             {"prefill: head_dim 65 is no multiple of 8", 2}};
  run.tallies[0].redrawn = 5;
  run.tallies[0].declines["prefill: keys 65 are no multiple of 16"] = 5;
  run.tallies[2].declines = {{"append is not offered", 5}};
  run.power["drops_one_key"] = {.refused = 900, .cases = 1000};
  run.power["lse_in_base_two"] = {.refused = 0, .cases = 12};
  run.power["never_tried"] = {.refused = 0, .cases = 0};
  run.features = {{"causal", 300}, {"gqa", 250}};
  run.models = {{"sm_90+worst", 1219}};
  run.offered = {Operation::prefill, Operation::decode};
  run.sight["prefill, keys 9 to 64"] = {.answered = 9, .unbounded = 1, .blind = 2, .sharp = 6};
  run.cells["decode mma in=f16"] = {.operation = Operation::decode,
                                    .kernels = "mma",
                                    .cases = 4,
                                    .sharp = 0,
                                    .smallest = parse_case("q=1x4x1x8 kv=1x5x8 in=f16")};
  run.covered[Operation::decode] = {.ranges = {{"head_dim", {1, 576}}, {"page_size", {16, 16}}},
                                    .values = 40,
                                    .pairs = 210,
                                    .unmet_values = {"head_dim=512", "page_size=256"},
                                    .unmet_pairs = {"causal with cache=e4m3 scales=token"}};
  run.widest["exp_error"] = {0x1p-20, "oracle_agreement", parse_case("q=1x1x1x8 kv=1x5x8")};
  run.unreproduced.push_back({"causality", parse_case("q=1x1x1x8 kv=1x5x8"), Setting{"sm_90", 5},
                              "faulted: crashed: it fell over"});
  run.findings = sample_findings();
  run.counters = {.launches = 1234, .warp_instructions = 5678901, .f32_flops = 987654321};
  run.counters.bank_conflicts = 17;
  return run;
}

}  // namespace attest
