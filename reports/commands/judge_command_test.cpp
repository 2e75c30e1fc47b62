// judge on files as another program would write them, byte by byte: what is right passes, a planted
// defect of each kind is refused where it is, and what cannot be judged says why.
#include <functional>

#include "reports/commands/testing/judge_fixture.hpp"
#include "reports/safetensors.hpp"

namespace attest {
namespace {

class JudgeCommand : public JudgeFixture {};

TEST_F(JudgeCommand, ARightAnswerIsAccepted) {
  write({});
  const Ran ran = judged(std::string(kWords) + " -o v.safetensors");
  EXPECT_EQ(ran.exit_code, 0) << ran.out << ran.err;
  EXPECT_EQ(ran.last_line(), "all 90 numbers are accepted");
  const auto json = verdict();
  EXPECT_EQ(json["schema"], 1);
  EXPECT_EQ(json["problem"], "q=1x2x5x8 kv=1x9x8 in=bf16 out=bf16 causal");
  EXPECT_EQ(json["precision"]["kv_block"], 4);
  EXPECT_EQ(json["tensors"]["o"]["accepted"], 80);
  EXPECT_EQ(json["tensors"]["lse"]["refused"], 0);
  EXPECT_LE(json["tensors"]["o"]["margin_max"].get<double>(), 1);
  EXPECT_GT(json["tensors"]["lse"]["margin_max"].get<double>(), 0);
  const MappedFile file(folder_ / "v.safetensors");
  const Safetensors tensors = parse_safetensors(file.bytes(), "v");
  EXPECT_EQ(tensors.tensors.size(), 6U);
  for (const char* name : {"o_margin", "o_low", "o_high"}) {
    EXPECT_EQ(tensors.find(name)->shape, (std::vector<Index>{1, 2, 5, 8})) << name;
  }
  EXPECT_EQ(tensors.find("lse_margin")->shape, (std::vector<Index>{1, 2, 5}));
  const Written it;
  for (std::size_t n = 0; n < it.o.size(); ++n) {
    const auto number = [&](const char* name) {
      double x = 0;
      std::memcpy(&x, tensors.find(name)->bytes.data() + 8 * n, 8);
      return x;
    };
    EXPECT_LE(number("o_low"), it.o[n]);
    EXPECT_GE(number("o_high"), it.o[n]);
    EXPECT_LE(number("o_margin"), 1);
  }
}

TEST_F(JudgeCommand, APlantedDefectIsRefusedWhereItIs) {
  const std::pair<const char*, std::function<void(Written&)>> defects[] = {
      {"one number", [](Written& w) { w.o[3 * 8 + 5] += 0.5F; }},
      {"NaN", [](Written& w) { w.o[3 * 8 + 5] = NAN; }},
      {"a row of zeros", [](Written& w) { std::fill_n(&w.o[3 * 8], 8, 0.0F); }},
      {"lse of a row", [](Written& w) { w.lse[3] += 0x1p-10F; }},
  };
  for (const auto& [name, plant] : defects) {
    Written it;
    plant(it);
    write(it);
    const Ran ran = judged();
    EXPECT_EQ(ran.exit_code, 1) << name << ran.out;
    const auto json = verdict();
    ASSERT_EQ(json["refused_rows"].size(), 1U) << name;
    EXPECT_EQ(json["refused_rows"][0],
              (nlohmann::json{{"batch", 0}, {"head", 0}, {"first", 3}, {"last", 3}}))
        << name;
    EXPECT_NE(ran.out.find("batch 0, head 0, row 3\n"), std::string::npos) << ran.out;
  }
  const auto worst = verdict()["tensors"]["lse"]["worst"][0];
  EXPECT_EQ(worst["where"], (nlohmann::json{0, 0, 3, 0}));
  EXPECT_GT(worst["ulps"].get<double>(), 0);
  EXPECT_GT(worst["got"].get<double>(), worst["high"].get<double>());
}

TEST_F(JudgeCommand, ASampleSaysThatItIsOne) {
  Written it;
  it.o[3 * 8 + 5] += 0.5F;
  write(it);
  int found = 0;
  for (int seed = 1; seed <= 24; ++seed) {
    const std::string words =
        std::string(kWords) + " --rows 2 --heads 1 --seed " + std::to_string(seed);
    const Ran ran = judged(words);
    EXPECT_NE(ran.out.find("a sample is judged: 2 of 10 rows, of 1 of 2 heads, seed " +
                           std::to_string(seed)),
              std::string::npos)
        << ran.out;
    const auto json = verdict();
    EXPECT_EQ(json["sample"],
              (nlohmann::json{
                  {"rows", 2}, {"of_rows", 10}, {"heads", 1}, {"of_heads", 2}, {"seed", seed}}));
    EXPECT_EQ(json["tensors"]["o"]["left_out"], 64);
    EXPECT_EQ(json["rows"]["quantised"].get<int>() + json["rows"]["running"].get<int>() +
                  json["rows"]["order_free"].get<int>(),
              2);
    EXPECT_EQ(judged(words).exit_code, ran.exit_code);
    if (ran.exit_code == 1) {
      ++found;
    } else {
      EXPECT_NE(ran.out.find("in 2 of 10 rows; nothing is said of the others"), std::string::npos);
    }
  }
  EXPECT_GT(found, 0) << "one of five samples holds the row";
  EXPECT_LT(found, 24);
  EXPECT_EQ(judged(std::string(kWords) + " --rows 100 --heads 100").exit_code, 1) << "all of them";
  EXPECT_EQ(verdict()["sample"]["rows"], 10);
  refuses(std::string("judge out.safetensors") + kWords + " --rows 0", {"--rows", "nothing"});
  refuses(std::string("judge out.safetensors") + kWords + " --heads -3", {"--heads", "negative"});
}

TEST_F(JudgeCommand, WhatIsWrongEverywhereIsRefused) {
  const std::pair<const char*, std::function<void(Written&)>> defects[] = {
      {"the last key is dropped", [](Written& w) { w.dropped = 1; }},
      {"no scale", [](Written& w) { w.scale = 1; }},
      {"not causal", [](Written& w) { w.causal = false; }},
      {"another head", [](Written& w) { std::rotate(w.q.begin(), w.q.begin() + 40, w.q.end()); }},
  };
  for (const auto& [name, plant] : defects) {
    Written it;
    const auto q = it.q;
    plant(it);
    it.compute();
    it.q = q;
    write(it);
    EXPECT_EQ(judged().exit_code, 1) << name;
    EXPECT_GT(verdict()["tensors"]["o"]["refused"].get<int>(), 8) << name;
  }
}

TEST_F(JudgeCommand, EitherTensorIsEnough) {
  write({}, true, false);
  EXPECT_EQ(judged().exit_code, 0);
  EXPECT_FALSE(verdict()["tensors"].contains("lse"));
  write({}, false, true);
  EXPECT_EQ(judged().exit_code, 0);
  EXPECT_FALSE(verdict()["tensors"].contains("o"));
  write({}, false, false);
  refuses(std::string("judge out.safetensors") + kWords, {"nothing to judge", "neither"});
}

TEST_F(JudgeCommand, ThePathMayStandInTheFile) {
  write({});
  refuses("judge out.safetensors --problem causal",
          {"out.safetensors", "--path", "fa2", "attest list paths", "metadata"});
  write({}, true, true, R"("precision":"fa2 kv_block=4","problem":"causal")");
  EXPECT_EQ(judged("").exit_code, 0);
  EXPECT_EQ(verdict()["precision"]["kv_blocks_descending"], true);
  // An f32 kernel's weights are not rounded to bf16: its bound refuses what these became.
  EXPECT_EQ(judged(" --path f32").exit_code, 1);
  write({}, true, true, R"("precision":"fa2 kv_blok=4")");
  refuses("judge out.safetensors", {"metadata entry precision", "column 5", "'kv_block'"});
  refuses("judge out.safetensors --path 'fa2 kv_block=-1'",
          {"precision, column 14", "kv_block is -1"});
}

TEST_F(JudgeCommand, WhatCannotBeJudgedSaysWhy) {
  Written it;
  FileWriter file = inputs_of(it);
  it.o[7] = 0.1F;
  file.f32("o", "1,2,5,8", it.o);
  file.write(folder_ / "out.safetensors");
  refuses(std::string("judge out.safetensors --problem 'causal out=bf16' --path fa2"),
          {"out.safetensors: o: element 7 is 0.1", "no bf16 number", "out=FORMAT"});
  write(it);
  refuses(std::string("judge out.safetensors -o out.safetensors") + kWords, {"replace"});
  refuses(std::string("judge absent.safetensors") + kWords, {"absent.safetensors"});
  refuses(std::string("judge out.safetensors --problem cuasal --path fa2"),
          {"did you mean 'causal'"});
  std::fill(it.q.begin(), it.q.end(), INFINITY);
  write(it);
  const Ran ran = judged();
  EXPECT_EQ(ran.exit_code, 2) << ran.out;
  EXPECT_NE(ran.last_line().find("nothing was judged"), std::string::npos);
  EXPECT_NE(ran.out.find("80 not judged because nothing is promised"), std::string::npos)
      << ran.out;
}

TEST_F(JudgeCommand, EveryFormatOfFrameworksIsRead) {
  // One key: O is its value, LSE is q.k. All numbers are 1.5.
  const auto pattern = [](std::uint32_t bits, int bytes) {
    std::string text;
    for (int n = 0; n < bytes; ++n) text += static_cast<char>(bits >> (8 * n));
    return text;
  };
  const std::pair<std::string, std::string> formats[] = {{"F32", pattern(0x3fc00000, 4)},
                                                         {"F16", pattern(0x3e00, 2)},
                                                         {"BF16", pattern(0x3fc0, 2)},
                                                         {"F8_E4M3", pattern(0x3c, 1)}};
  for (const auto& [input, in_bytes] : formats) {
    for (const auto& [output, out_bytes] : formats) {
      FileWriter file;
      for (const char* name : {"q", "k", "v"}) file.add(name, input, "1,1", in_bytes);
      file.add("o", output, "1,1", out_bytes);
      file.f32("lse", "1", {2.25F});
      file.write(folder_ / "out.safetensors");
      if (output == "F8_E4M3") {
        refuses("judge out.safetensors --path f32", {"o is stored as F8_E4M3"});
        continue;
      }
      const Ran ran = judged(" --path f32");
      EXPECT_EQ(ran.exit_code, 0) << input << " " << output << ran.out << ran.err;
      FileWriter wrong;
      for (const char* name : {"q", "k", "v"}) wrong.add(name, input, "1,1", in_bytes);
      std::string next = out_bytes;
      next[0] = static_cast<char>(next[0] + 1);  // the neighbour of 1.5
      wrong.add("o", output, "1,1", next);
      wrong.write(folder_ / "out.safetensors");
      const bool exact = output != "F32";  // f32 roundings reach f32 neighbours only
      EXPECT_EQ(judged(" --path f32").exit_code, exact ? 1 : 0) << input << " " << output;
    }
  }
}

TEST_F(JudgeCommand, RowsMayComeBeforeHeads) {
  const Written it;
  const auto turned = [](const std::vector<float>& heads) {  // (H, T, D) to (T, H, D)
    std::vector<float> rows;
    for (std::size_t t = 0; t < 5; ++t) {
      for (std::size_t h = 0; h < 2; ++h) {
        rows.insert(rows.end(), &heads[(h * 5 + t) * 8], &heads[(h * 5 + t) * 8] + 8);
      }
    }
    return rows;
  };
  FileWriter file;
  file.bf16("q", "1,5,2,8", turned(it.q));
  file.bf16("k", "1,9,1,8", it.k);
  file.bf16("v", "1,9,1,8", it.v);
  file.bf16("o", "1,5,2,8", turned(it.o));
  file.f32("lse", "1,2,5", it.lse);
  file.write(folder_ / "out.safetensors");
  refuses(std::string("judge out.safetensors") + kWords, {"say layout=bthd"});
  EXPECT_EQ(judged(" --problem 'causal layout=bthd' --path 'fa2 kv_block=4'").exit_code, 0);
  file.metadata = R"("axes":"bthd")";
  file.write(folder_ / "out.safetensors");
  EXPECT_EQ(judged().exit_code, 0);
}

TEST_F(JudgeCommand, AFileThatLooksAsIfItHadHeadsFirstIsRecognised) {
  Written it;  // as many rows as keys, of one head: (B, T, 1, D) is also (B, H, 1, D)
  it.q.resize(std::size_t{9} * 8);
  it.causal = false;
  it.o.clear();
  it.lse.clear();
  for (std::size_t row = 0; row < 9; ++row) it.attend(&it.q[row * 8], 9);
  FileWriter file;
  file.bf16("q", "1,9,1,8", it.q);
  file.bf16("k", "1,9,1,8", it.k);
  file.bf16("v", "1,9,1,8", it.v);
  file.bf16("o", "1,9,1,8", it.o);
  file.write(folder_ / "out.safetensors");
  const Ran ran = judged(" --path 'fa2 kv_block=4'");
  EXPECT_EQ(ran.exit_code, 1);
  EXPECT_NE(ran.out.find("rows before heads: say --problem layout=bthd"), std::string::npos)
      << ran.out;
  EXPECT_EQ(verdict()["remarks"].size(), 1U);
  EXPECT_EQ(judged(" --problem layout=bthd --path 'fa2 kv_block=4'").exit_code, 0);
}

TEST_F(JudgeCommand, RefusalsAreExplained) {
  Written it;
  it.dropped = 1;
  it.compute();
  write(it);
  const Ran ran = judged();
  EXPECT_NE(ran.out.find("this is what one gets when the last visible key is left out"),
            std::string::npos)
      << ran.out;
  write({});
  EXPECT_EQ(judged(" --problem causal --path 'fa2 kv_block=8'").exit_code, 1);
  EXPECT_NE(text_of(folder_ / "out.txt").find("would be accepted if the path says kv_block=4"),
            std::string::npos)
      << text_of(folder_ / "out.txt");
  EXPECT_NE(judged(" --path 'fa2 kv_block=4'").out.find("if the problem says causal"),
            std::string::npos);
}

TEST_F(JudgeCommand, RowsBehindALengthAreNotJudged) {
  Written it;
  it.causal = false;  // so that a shorter query length moves no diagonal
  it.compute();
  std::fill_n(&it.o[3 * 8], 16, NAN);
  std::fill_n(&it.o[8 * 8], 16, NAN);
  std::fill_n(&it.lse[3], 2, NAN);
  std::fill_n(&it.lse[8], 2, NAN);
  write(it);
  const Ran ran = judged(" --problem q_len=3 --path 'fa2 kv_block=4'");
  EXPECT_EQ(ran.exit_code, 0) << ran.out;
  EXPECT_NE(ran.out.find("32 behind a query length"), std::string::npos) << ran.out;
  EXPECT_EQ(verdict()["tensors"]["lse"]["behind_length"], 4);
  EXPECT_EQ(judged(" --path 'fa2 kv_block=4'").exit_code, 1);
}

}  // namespace
}  // namespace attest
