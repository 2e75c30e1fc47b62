// What must hold of the tables of detection: the correct kernel is refused nowhere, a stronger
// bound sees no less, and the strongest sees every defect; and the page is up to date. The rules of
// other projects by hand.
#include "reference/model/detection.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <iterator>

#include "reference/model/peer_rules.hpp"

namespace attest {
namespace {

TEST(Detection, HealthyIsNeverRefusedAndStrengthPays) {
  const std::vector<DetectionTable> tables = detection_tables();
  std::array<Index, kDefectNames.size()> strongest{}, changed{};
  for (const DetectionTable& table : tables) {
    ASSERT_EQ(table.lines.size(), kDefectNames.size());
    for (const Detection& line : table.lines) {
      const auto defect = static_cast<std::size_t>(line.defect);
      for (std::size_t s = 0; s < kStrengthNames.size(); ++s) {
        EXPECT_LE(line.refused[s], line.changed) << table.title << ", " << kDefectNames[defect];
        EXPECT_GE(line.refused[s], line.refused[0]) << table.title << ", " << kDefectNames[defect];
      }
      strongest[defect] += line.refused.back();
      changed[defect] += line.changed;
    }
  }
  EXPECT_EQ(changed[0], 0);  // and so nothing of the healthy model was refused
  for (std::size_t n = 1; n < strongest.size(); ++n) EXPECT_GT(strongest[n], 0) << kDefectNames[n];

  std::ifstream file(ATTEST_DETECTION_PAGE);
  const std::string page{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(page, detection_page(tables)) << "bin/detection_page > reference/bound/detection.md";
}

const PeerRule& rule(std::string_view name) {
  for (const PeerRule& one : peer_rules()) {
    if (one.name == name) return one;
  }
  throw std::out_of_range("no such rule");
}

TEST(PeerRules, DecideAsWritten) {
  PeerInputs in{Format::bf16, {1.01, 0}, {1, 0}, {1.0078125, 0}};
  EXPECT_TRUE(rule("FlashAttention 2").accepts(in));  // 0.01 <= 2 * 0.0078125
  in.o[0] = 1.016;
  EXPECT_FALSE(rule("FlashAttention 2").accepts(in));
  EXPECT_TRUE(rule("FlashInfer").accepts(in));  // 0.016 <= 0.01 + 0.01
  EXPECT_FALSE(rule("CUTLASS").accepts(in));
  EXPECT_TRUE(rule("PyTorch").accepts(in));  // 0.016 <= 0.00001 + 0.016
  in.o[1] = 1e-4;
  EXPECT_FALSE(rule("PyTorch").accepts(in));
  EXPECT_TRUE(rule("llama.cpp").accepts(in));  // 0.000256 <= 0.0005
  EXPECT_TRUE(rule("FlashInfer PrimTS").accepts(in));
  in.o[0] = 1.021;
  EXPECT_FALSE(rule("FlashInfer PrimTS").accepts(in));  // its norm, not its elements
  EXPECT_FALSE(rule("FlashInfer").accepts(in));
  EXPECT_TRUE(rule("vLLM").accepts(in));
  EXPECT_TRUE(rule("xFormers").accepts(in));
  in.o[0] = 1.029;
  EXPECT_FALSE(rule("vLLM").accepts(in));
  EXPECT_FALSE(rule("xFormers").accepts(in));
  EXPECT_TRUE(rule("Transformer Engine").accepts(in));
  EXPECT_TRUE(rule("cuDNN frontend").accepts(in));
  in.o[0] = 1.05;
  for (const PeerRule& one : peer_rules()) EXPECT_FALSE(one.accepts(in)) << one.name;
}

/// Two keys of logits 0 and -1: weights 1 and 1/e over their sum, rounded, then O.
TEST(PeerRules, TheBaselineRoundsEveryStep) {
  Problem problem{
      .seqlen_kv = 2, .input = Format::bf16, .output = Format::bf16, .softmax_scale = 1};
  Values values;
  values.q = Tensor(Format::bf16, {1, 1, 1, 1});
  values.k = values.v = Tensor(Format::bf16, {1, 1, 2, 1});
  values.q.set(0, 1);
  values.k.set(1, -1);
  values.v.set(0, 1);
  values.v.set(1, 3);
  const double p = 1 / (1 + 0.36787944117144233);  // 0.7310586: bf16 holds 0.73046875
  ASSERT_NEAR(p, 0.73046875, 0x1p-9);
  // 0.26894142 is 0.26953125 in bf16, and 0.73046875 + 3 * 0.26953125 = 1.5390625.
  EXPECT_EQ(plain_attention(problem, values)[0], 1.5390625);
}

}  // namespace
}  // namespace attest
