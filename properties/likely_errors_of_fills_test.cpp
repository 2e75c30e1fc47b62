// A kernel that is right raises no alarm of reference/statistics, whatever the fill: either the
// model of likely errors holds on it, or it is declined.
#include <gtest/gtest.h>

#include <cstdio>
#include <optional>

#include "properties/fills.hpp"
#include "reference/model/model.hpp"
#include "reference/statistics/z_tally.hpp"
#include "reference/text.hpp"

namespace attest {
namespace {

struct Kernel {
  const char* line;
  PrecisionPath path;
};

TEST(LikelyErrorsOfFills, NoFillRaisesAFalseAlarm) {
  PrecisionPath f32_path{.keys_per_rescale = 32};
  PrecisionPath bf16_path{.p_format = Format::bf16, .keys_per_rescale = 32, .tensor_step = 16};
  PrecisionPath f16_path{.p_format = Format::f16, .keys_per_rescale = 32, .tensor_step = 8};
  for (PrecisionPath* path : {&f32_path, &bf16_path, &f16_path})
    path->kv_block = path->keys_per_rescale;
  const Kernel kernels[] = {
      {"q=1x2x48x64 kv=1x100x48", f32_path},
      {"q=1x2x48x64 kv=2x100x48 in=bf16 out=f32 causal", bf16_path},
      {"q=1x2x48x64 kv=2x100x48 in=bf16 out=bf16", bf16_path},
      {"q=1x2x48x64 kv=2x100x48 in=f16 out=f32", f16_path},
      {"q=1x2x48x64 kv=1x100x48 in=f16 out=f16 window=60,inf", f16_path},
  };
  int judged = 0, declined = 0;
  for (const Fill& fill : fills()) {
    int judged_rows = 0;
    std::string why;
    for (const Kernel& kernel : kernels) {
      Case test_case = parse_case(kernel.line);
      test_case.fill = fill.name;
      test_case.seed = 11;
      const Problem& p = test_case.problem;
      const Values values = make_values(test_case);
      const std::vector<double> o = model_attention(p, values, kernel.path).o;
      Tensor output(p.output, {p.batch, p.num_heads_q, p.seqlen_q, p.head_dim_v});
      for (std::size_t at = 0; at < o.size(); ++at) output.set(static_cast<Index>(at), o[at]);
      ZTally tally;
      tally.add(p, values, kernel.path, output);
      const std::optional<ZSummary> z = tally.summary();
      ++(z ? judged : declined);
      if (!z) {
        why = tally.why_not();
        continue;
      }
      judged_rows += static_cast<int>(z->rows);
      for (const ZAlarm& alarm : z->alarms) {
        ADD_FAILURE() << print(test_case) << ": " << alarm.test << " " << alarm.found << " > "
                      << alarm.limit;
      }
    }
    std::printf("%-16s %4d of 480 rows judged%s%s\n", std::string(fill.name).c_str(), judged_rows,
                why.empty() ? "" : "; ", why.c_str());
  }
  EXPECT_GT(judged, 40);
  EXPECT_GT(declined, 20);
}

}  // namespace
}  // namespace attest
