// What judge says besides its verdicts: whether it could have told, what it was told in vain, and
// what a refused answer may be. A hint that could mislead is not given.
#include <algorithm>

#include "reports/commands/testing/judge_fixture.hpp"

namespace attest {
namespace {

class JudgeHints : public JudgeFixture {
 protected:
  static constexpr const char* kLoose = " --problem causal --path 'p_format=bf16 exp_error=0.5'";

  std::string outcome(const std::string& wrong_answer) const {
    const auto json = verdict();
    for (const auto& each : json["power"]) {
      if (each["wrong_answer"] == wrong_answer) return each["outcome"];
    }
    return "";
  }
  void says(const Ran& ran, const std::string& words) const {
    EXPECT_NE(ran.out.find(words), std::string::npos) << "not said: " << words << "\n" << ran.out;
  }
  void leaves_out(const Ran& ran, const std::string& words) const {
    EXPECT_EQ(ran.out.find(words), std::string::npos) << "said: " << words << "\n" << ran.out;
  }
};

TEST_F(JudgeHints, WhatAPathCannotTellIsNoVerdict) {
  Written zeros, junk;
  std::fill(zeros.o.begin(), zeros.o.end(), 0.0F);
  for (std::size_t n = 0; n < junk.o.size(); ++n) junk.o[n] = n % 2 == 0 ? 0.25F : -0.125F;
  for (const Written& it : {Written(), zeros, junk}) {
    write(it);
    const Ran ran = judged(kLoose);
    EXPECT_EQ(ran.exit_code, 2) << ran.out;
    EXPECT_EQ(ran.last_line(),
              "could not tell: all 90 numbers are accepted, but zeros in place of o would be "
              "accepted too: exp_error=0.5 lets that pass: declare no more error than the kernel "
              "makes");
    says(ran, "would be accepted    answers_zero");
    EXPECT_EQ(verdict()["conclusion"]["exit_code"], 2);
    EXPECT_EQ(verdict()["loose"], nlohmann::json{"exp_error=0.5"});
    EXPECT_EQ(outcome("answers_zero"), "accepted");
    EXPECT_EQ(outcome("drops_one_key"), "accepted");
  }
  for (const Written& it : {zeros, junk}) {  // the same are refused where it can be told
    write(it);
    EXPECT_EQ(judged().exit_code, 1);
    EXPECT_EQ(outcome("answers_zero"), "refused");
  }
}

TEST_F(JudgeHints, WhatWouldBeAcceptedIsNamedAndIsNoError) {
  write({});
  const Ran ran = judged();
  EXPECT_EQ(ran.exit_code, 0);
  says(ran, "would be refused     answers_zero");
  says(ran, "change nothing here  ");
  EXPECT_EQ(outcome("drops_one_key"), "refused");
  EXPECT_EQ(outcome("forgets_max"), "same");
  EXPECT_TRUE(verdict()["loose"].empty());
  const auto json = verdict();
  for (const auto& each : json["power"]) {
    EXPECT_FALSE(each["meaning"].get<std::string>().empty());
  }
  // A refused answer stays refused, whatever else would be accepted, and is not told of it.
  Written wrong;
  wrong.o[5] = 1e9F;
  write(wrong);
  const Ran refused = judged(kLoose);
  EXPECT_EQ(refused.exit_code, 1);
  leaves_out(refused, "would be accepted    ");
}

TEST_F(JudgeHints, OnlyWhatWasGivenCounts) {
  write({}, false, true);
  EXPECT_EQ(judged().exit_code, 0);
  EXPECT_EQ(outcome("swaps_two_values"), "same");
  EXPECT_EQ(outcome("drops_one_key"), "refused");
  const Ran ran = judged(kLoose);
  EXPECT_EQ(ran.exit_code, 2) << ran.out;
  says(ran, "lse would be accepted too with whichever wrong answer was tried");
  write({}, true, false);
  EXPECT_EQ(judged().exit_code, 0);
  EXPECT_EQ(outcome("other_lse_base"), "same");
  EXPECT_EQ(judged(kLoose).exit_code, 2);
}

TEST_F(JudgeHints, InputsThatShowNothingAreNamed) {
  Written it;
  std::fill(it.v.begin(), it.v.end(), 0.0F);
  it.compute();
  write(it);
  const Ran ran = judged();
  EXPECT_EQ(ran.exit_code, 2);
  says(ran, "the right o is zero for these values");
  it.o[3] = 1;
  write(it);
  EXPECT_EQ(judged().exit_code, 1);
  // No row sees a key: zeros and -inf are asked for, and NaN would be refused.
  FileWriter file = inputs_of(it);
  file.bf16("o", "1,2,5,8", std::vector<float>(80, 0.0F));
  file.f32("lse", "1,2,5", std::vector<float>(10, -INFINITY));
  file.write(folder_ / "out.safetensors");
  EXPECT_EQ(judged(" --problem kv_len=0 --path fa2").exit_code, 0);
  EXPECT_TRUE(verdict()["power"].empty());
}

TEST_F(JudgeHints, WhereManyRescalesHideAllABlockIsAskedFor) {
  // 4000 keys, after each of which a rescale may come, and a mean of values that cancel.
  constexpr int kKeys = 4000;
  const std::string keys = std::to_string(kKeys);
  std::vector<float> values;
  for (int n = 0; n < kKeys; ++n) values.push_back(n % 2 == 0 ? 1 : -1);
  values[0] = 9;  // the mean is 8 / 4000
  FileWriter file;
  file.f32("q", "1,1", {0});
  file.f32("k", keys + ",1", std::vector<float>(kKeys, 1));
  file.f32("v", keys + ",1", values);
  file.f32("o", "1,1", {0.002F});
  file.write(folder_ / "out.safetensors");
  const Ran ran = judged(" --path 'exp_error=1e-6 p_format=bf16'");
  EXPECT_EQ(ran.exit_code, 2) << ran.out;
  says(ran, "say kv_block=KEYS, how many keys share one running maximum");
  EXPECT_EQ(judged(" --path 'exp_error=1e-6 p_format=bf16 kv_block=64'").exit_code, 0)
      << text_of("out.txt");
  // A path of f32 rules out what its bound, here of 4000 additions, cannot see.
  const Ran any = judged(" --path 'exp_error=1e-6 kv_block=64'");
  EXPECT_EQ(any.exit_code, 2);
  says(any, "a loss of precision that the path rules out would be accepted too (rounds_o_to_bf16");
}

TEST_F(JudgeHints, AnErrorThatPromisesNothingIsBlamed) {
  write({});
  const Ran ran = judged(" --problem causal --path 'p_format=bf16 exp_error=1'");
  EXPECT_EQ(ran.exit_code, 2);
  says(ran, "10 not judged because with exp_error=1 declared nothing is promised");
  leaves_out(ran, "not finite");
  EXPECT_EQ(verdict()["tensors"]["lse"]["unpromised_by"], nlohmann::json{"exp_error=1"});
  // One key: O does not depend on the exponential, but an LSE that was given is not judged.
  FileWriter file;
  for (const char* name : {"q", "k", "v", "o"}) file.f32(name, "1,1", {1.5F});
  file.f32("lse", "1", {2.25F});
  file.write(folder_ / "out.safetensors");
  const Ran one = judged(" --path exp_error=1");
  EXPECT_EQ(one.exit_code, 2) << one.out;
  says(one, "could not tell: lse was given, but nothing of it could be judged");
}

TEST_F(JudgeHints, NumbersThatAreNotFiniteHaveAWord) {
  Written it;
  it.o[3 * 8 + 5] = NAN;
  it.o[3 * 8 + 6] = INFINITY;
  it.o[3 * 8 + 7] = 3;
  write(it);
  says(judged(), "3 refused (2 of them NaN or infinite)");
  EXPECT_EQ(verdict()["tensors"]["o"]["refused_not_finite"], 2);
  EXPECT_EQ(verdict()["tensors"]["lse"]["refused_not_finite"], 0);
}

TEST_F(JudgeHints, SixteenBitsStoredInF32AreRecognised) {
  const Written it;
  FileWriter file = inputs_of(it);
  file.f32("o", "1,2,5,8", it.o);
  file.write(folder_ / "out.safetensors");
  const std::string path = " --path 'fa2 kv_block=4'";
  const Ran ran = judged(" --problem causal" + path);
  EXPECT_EQ(ran.exit_code, 1);
  says(ran,
       "every number of o is a bf16 number: say --problem out=bf16, with which everything would be "
       "accepted");
  EXPECT_EQ(verdict()["remarks"].size(), 1U);
  EXPECT_EQ(judged(" --problem 'causal out=bf16'" + path).exit_code, 0);
  leaves_out(judged(" --problem 'causal out=f32'" + path), "say --problem out=bf16");
  Written wrong;
  wrong.o[0] = bf16(wrong.o[0] + 2);
  FileWriter other = inputs_of(it);
  other.f32("o", "1,2,5,8", wrong.o);
  other.write(folder_ / "out.safetensors");
  says(judged(" --problem causal" + path), "out=bf16, with which fewer would be refused");
}

TEST_F(JudgeHints, PartsWithoutSplitsAreSaidToBeInVain) {
  write({});
  const std::string said = "the path says split_size=even, but the problem says nothing of splits";
  const Ran ran = judged(" --problem causal --path 'fa2 kv_block=4 split_size=even'");
  EXPECT_EQ(ran.exit_code, 0);
  says(ran, said);
  EXPECT_EQ(verdict()["remarks"].size(), 1U);
  leaves_out(judged(" --problem 'causal splits=2' --path 'fa2 kv_block=4 split_size=even'"), said);
  leaves_out(judged(), said);
}

TEST_F(JudgeHints, WordsThatNeedOthersAreSaidToBeInVain) {
  write({});
  says(judged(" --problem causal --path fa2"),
       "the path says kv_blocks_descending partial_row_sums=4, which tells nothing without "
       "kv_block=KEYS");
  says(judged(" --problem 'causal splits=2' --path 'fa2 kv_block=4'"),
       "the path says kv_block=4, which tells nothing of split keys without split_size=");
  leaves_out(judged(" --problem 'causal splits=2' --path 'fa2 kv_block=4 split_size=even'"),
             "tells nothing");
}

TEST_F(JudgeHints, AnLseThatWasRoundedIsRecognised) {
  Written it;
  for (float& number : it.lse) number = bf16(number);
  write(it);
  const Ran ran = judged();
  EXPECT_EQ(ran.exit_code, 1);
  says(ran, "every number of lse is a bf16 number; it is judged as f32");
  EXPECT_EQ(verdict()["remarks"].size(), 1U);
  it.dropped = 1;  // and o is wrong
  it.compute();
  for (float& number : it.lse) number = bf16(number);
  write(it);
  const Ran both = judged();
  says(both, "every number of lse is a bf16 number");
  EXPECT_EQ(verdict()["remarks"].size(), 2U);
}

TEST_F(JudgeHints, WhatCannotBeWrittenIsSaidFirst) {
  write({});
  for (const char* option : {" --json", " -o"}) {
    refuses("judge out.safetensors --problem causal --path fa2" + std::string(option) +
                " nowhere/x.out",
            {"nowhere/x.out", "cannot be written"});
    EXPECT_EQ(text_of(folder_ / "out.txt"), "");
  }
  refuses("judge out.safetensors --problem causal --path fa2 --json x -o x", {"the same file"});
}

TEST_F(JudgeHints, TensorsOfOtherNamesAndDtypesAreNotGuessed) {
  const Written it;
  FileWriter file;
  file.bf16("Q", "1,2,5,8", it.q);
  file.write(folder_ / "out.safetensors");
  refuses("judge out.safetensors --path fa2", {"the tensor Q means nothing", "did you mean q?"});
  FileWriter mixed;
  mixed.bf16("q", "1,2,5,8", it.q);
  mixed.f32("k", "1,1,9,8", it.k);
  mixed.bf16("v", "1,1,9,8", it.v);
  mixed.bf16("o", "1,2,5,8", it.o);
  mixed.write(folder_ / "out.safetensors");
  refuses("judge out.safetensors --problem causal --path fa2",
          {"q, k and v are stored as BF16, F32 and BF16", "say in=f32"});
  EXPECT_EQ(judged(" --problem 'causal in=bf16 out=bf16' --path 'fa2 kv_block=4'").exit_code, 0);
}

}  // namespace
}  // namespace attest
