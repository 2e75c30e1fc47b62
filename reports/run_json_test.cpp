// run.json: what is written is read back, and what is wrong is refused by name.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>

#include "reference/precision_text.hpp"
#include "reports/formats.hpp"
#include "reports/testing/sample_run.hpp"

namespace attest {
namespace {

std::string refusal(const std::string& text) {
  try {
    run_of_json(text, "run.json");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(RunJson, IsReadBackWhole) {
  const attest::Run run = sample_run();
  const std::string text = run_json_of(run);
  const attest::Run back = run_of_json(text, "run.json");
  EXPECT_EQ(back.seed, run.seed);
  EXPECT_EQ(back.next_index, 42U);
  EXPECT_EQ(back.seconds, 12.5);
  EXPECT_EQ(back.subject, run.subject);
  EXPECT_EQ(back.precision, run.precision);
  ASSERT_EQ(back.tallies.size(), run.tallies.size());
  EXPECT_EQ(back.tallies[0].margin_case, run.tallies[0].margin_case);
  EXPECT_EQ(back.tallies[0].margin_max, run.tallies[0].margin_max);  // to the last bit
  EXPECT_EQ(back.tallies[0].margin_where, run.tallies[0].margin_where);
  EXPECT_EQ(back.tallies[1].margin_case, Case{});
  for (std::size_t i = 0; i < run.tallies.size(); ++i) {
    EXPECT_EQ(back.tallies[i].declines, run.tallies[i].declines);
  }
  ASSERT_EQ(back.findings.size(), 2U);
  EXPECT_EQ(back.findings[0].found, run.findings[0].found);
  EXPECT_EQ(back.findings[0].shrunk, run.findings[0].shrunk);
  EXPECT_EQ(back.findings[0].verdict.power.at(0).wrong_answer, "leaks_one_key");
  EXPECT_TRUE(back.findings[0].verdict.power.at(0).refused);
  EXPECT_EQ(back.power.at("lse_in_base_two").cases, 12U);
  EXPECT_EQ(back.features, run.features);
}

TEST(RunJson, WhatWasDrawnIsReadBackAndMayBeAbsent) {
  attest::Run run = sample_run();
  run.emulation = {std::string(kDrawn), "memcheck", std::nullopt};
  const std::string text = run_json_of(run);
  const attest::Run back = run_of_json(text, "run.json");
  EXPECT_EQ(back.emulation, run.emulation);
  EXPECT_EQ(back.models, run.models);
  EXPECT_EQ(back.findings[0].setting, (Setting{"sm_120", 5}));
  EXPECT_EQ(back.findings[1].setting, std::nullopt);
  EXPECT_EQ(run_json_of(back), text);
  EXPECT_TRUE(replay_line(back, back.findings[0])
                  .ends_with(" --numerics sm_120 --checks memcheck --schedule 5"));
  EXPECT_TRUE(replay_line(back, back.findings[1]).ends_with(".so' --checks memcheck"));
  std::string earlier = replaced(text, "\"setting\"", "\"earlier\"");
  earlier = replaced(earlier, "\"models\"", "\"earlier\"");
  const attest::Run old = run_of_json(earlier, "run.json");
  EXPECT_EQ(old.findings[0].setting, std::nullopt);
  EXPECT_TRUE(old.models.empty());
  EXPECT_NE(refusal(replaced(text, "\"schedule\": 5", "\"schedule\": -5")), "");
}

TEST(RunJson, PrecisionFromBeforeOrdersWereDeclaredIsRead) {
  const std::string text = run_json_of(sample_run());
  std::string earlier = text;
  for (const char* later : {"row_sum_of_rounded_p", "v_scale_in_p", "rescale_threshold_log2",
                            "p_scale_log2", "kv_block", "interleaved_accumulators",
                            "kv_blocks_descending", "split_size", "in_order", "partial_row_sums"}) {
    earlier =
        replaced(earlier, "\"" + std::string(later) + "\"", "\"was_" + std::string(later) + "\"");
  }
  PrecisionPath path = sample_run().precision;
  path.kv_blocks_descending = false;
  path.split_size = 0;
  EXPECT_EQ(run_of_json(earlier, "run.json").precision, path);
  std::string renamed = text;
  for (const PrecisionField& field : precision_fields()) {
    if (field.also.empty()) continue;
    renamed = replaced(renamed, "\"" + std::string(field.name) + "\"",
                       "\"" + std::string(field.also) + "\"");
  }
  EXPECT_EQ(run_of_json(renamed, "run.json").precision, sample_run().precision);
  EXPECT_NE(
      refusal(replaced(text, "\"p_format\"", "\"was\"")).find("precision: p_format is missing"),
      std::string::npos);
  EXPECT_NE(
      refusal(replaced(text, "\"keys_per_rescale\": 64", "\"keys_per_rescale\": 0"))
          .find("precision: keys_per_rescale is impossible: keys_per_rescale is 0; legal are"),
      std::string::npos);
  EXPECT_NE(refusal(replaced(text, "\"power_of_two\"", "\"power\""))
                .find("precision: split_size should be"),
            std::string::npos);
  EXPECT_NE(refusal(replaced(text, "\"bf16\"", "\"bf15\"")).find("precision: p_format \"bf15\""),
            std::string::npos);
}

TEST(RunJson, WritingWhatWasReadGivesTheSameText) {
  const std::string text = run_json_of(sample_run());
  EXPECT_EQ(run_json_of(run_of_json(text, "run.json")), text);
}

TEST(RunJson, FilesFromBeforeReasonsWereKeptAreRead) {
  attest::Run run;
  run.tallies.push_back(sample_tally("a", "b", 1, 0, 0, 0));
  const std::string text = run_json_of(run);
  const attest::Run back =
      run_of_json(replaced(text, "\"declines\": []", "\"unknown\": []"), "run.json");
  EXPECT_TRUE(back.tallies.at(0).declines.empty());
}

TEST(RunJson, NumbersThatJsonCannotSpellSurvive) {
  const attest::Run back = run_of_json(run_json_of(sample_run()), "run.json");
  EXPECT_EQ(back.findings[0].verdict.margin, INFINITY);
  EXPECT_TRUE(std::isnan(back.findings[1].verdict.error));
}

TEST(RunJson, BytesThatAreNoTextAreReplaced) {
  const attest::Run back = run_of_json(run_json_of(sample_run()), "run.json");
  EXPECT_NE(back.findings[1].verdict.why.find("\xEF\xBF\xBD"), std::string::npos);
}

TEST(RunJson, NamesWhatIsWrong) {
  const std::string text = run_json_of(sample_run());
  EXPECT_NE(refusal(replaced(text, "\"schema\": 1", "\"schema\": 2")).find("schema is 2"),
            std::string::npos);
  EXPECT_NE(refusal(replaced(text, "\"seed\": ", "\"seed\": -")).find("run.json: seed"),
            std::string::npos);
  EXPECT_NE(refusal(replaced(text, "\"held\": 1190", "\"held\": \"many\""))
                .find("properties[0]: held should be a whole number"),
            std::string::npos);
  EXPECT_NE(refusal(replaced(text, "\"held\": 1190", "\"kept\": 1190"))
                .find("properties[0]: held is missing"),
            std::string::npos);
  EXPECT_NE(
      refusal(replaced(text, "\"violated\",\n        \"power\"", "\"odd\",\n        \"power\""))
          .find("findings[0]: verdict: outcome: \"odd\""),
      std::string::npos);
  EXPECT_NE(refusal(replaced(text, "\"shrunk\": \"q=", "\"shrunk\": \"p="))
                .find("findings[0]: shrunk: case line, column 1"),
            std::string::npos);
  EXPECT_NE(refusal(replaced(text, "\"bf16\"", "\"bf17\"")).find("p_format"), std::string::npos);
}

TEST(RunJson, RefusesWhatIsNoJson) {
  EXPECT_NE(refusal("").find("run.json: not valid JSON"), std::string::npos);
  EXPECT_NE(refusal("[1, 2]").find("should be a JSON object"), std::string::npos);
  EXPECT_NE(refusal("{\"schema\": 1, \"schema\": 1}").find("\"schema\""), std::string::npos);
  EXPECT_NE(refusal(std::string(100000, '[')).find("nested deeper"), std::string::npos);
  const std::string text = run_json_of(sample_run());
  EXPECT_NE(refusal(text.substr(0, text.size() / 2)).find("not valid JSON"), std::string::npos);
}

TEST(RunJson, FilesAreReplacedWholeOrNotAtAll) {
  const auto folder = std::filesystem::path(testing::TempDir()) / "attest_run_json";
  std::filesystem::remove_all(folder);
  write_reports(folder, sample_run());
  EXPECT_EQ(run_json_of(read_run_json(folder / "run.json")), run_json_of(sample_run()));
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder)) ++files;
  EXPECT_EQ(files, 3U);  // run.json, junit.xml, summary.md and nothing half written
  EXPECT_THROW(read_run_json(folder / "absent.json"), Error);
  EXPECT_THROW(read_run_json(folder), Error);
  EXPECT_THROW(write_run_json(folder / "no" / "run.json", sample_run()), Error);
  std::ofstream(folder / "file") << "in the way";
  EXPECT_THROW(require_writable_folder(folder / "file"), Error);
  EXPECT_THROW(require_writable_folder("/proc/attest"), Error);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace attest
