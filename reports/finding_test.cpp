// Findings and truths as files: what comes back is what went in, bit for bit.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>

#include "properties/fills.hpp"
#include "reports/formats.hpp"
#include "reports/safetensors.hpp"
#include "reports/testing/sample_run.hpp"

namespace attest {
namespace {

class FindingFiles : public testing::Test {
 protected:
  void SetUp() override {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::path(testing::TempDir()) / (std::string("attest_") + info->name());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::filesystem::path folder_;
};

Case rich_case() {
  return parse_case(
      "q=2x4x3x2 kv=2x5x3 in=f16 out=bf16 bias alibi sinks mask layout=bthd kv_len=5,2 "
      "spare=2 seed=3");
}

Values rich_values() {
  Values values;
  values.q = Tensor(Format::f16, {2, 4, 3, 2});
  values.k = Tensor(Format::f16, {2, 2, 5, 2});
  values.v = Tensor(Format::f16, {2, 2, 5, 3});
  values.bias = Tensor(Format::f32, {2, 4, 3, 5});
  values.alibi_slopes = Tensor(Format::f32, {1, 1, 1, 4});
  values.sinks = Tensor(Format::f32, {1, 1, 1, 4});
  values.mask = VisibilityMask{2, 3, 5, std::vector<std::uint8_t>(30, 1)};
  values.mask->visible[7] = 0;
  values.bias->set(4, -INFINITY);
  for (Tensor* tensor : {&values.q, &values.k, &values.v, &*values.alibi_slopes, &*values.sinks}) {
    for (Index flat = 0; flat < tensor->count(); ++flat) tensor->set(flat, 0.125 * flat);
  }
  values.q.set_bits(0, 0x7e55);  // a NaN with a payload
  values.q.set_bits(1, 0x8000);  // -0
  return values;
}

TEST_F(FindingFiles, ComeBackBitForBit) {
  Finding finding = sample_run().findings[0];
  finding.shrunk = rich_case();
  finding.digest = 0xfedcba9876543210;
  finding.version = "0.0.9";
  finding.subject_hash = 17;
  const auto path =
      write_finding(folder_, finding, rich_values(), "a subject", "./attest replay x");
  EXPECT_EQ(path.parent_path(), folder_);
  const StoredFinding back = read_finding(path);
  EXPECT_EQ(back.property, "causality");
  EXPECT_EQ(back.subject, "a subject");
  EXPECT_EQ(back.replay, "./attest replay x");
  EXPECT_EQ(back.test_case, finding.shrunk);
  EXPECT_EQ(back.values, rich_values());
  EXPECT_EQ(back.digest, finding.digest);
  EXPECT_EQ(back.version, finding.version);
  EXPECT_EQ(back.subject_hash, finding.subject_hash);
  EXPECT_EQ(back.verdict.outcome, Outcome::violated);
  EXPECT_EQ(back.verdict.margin, INFINITY);
  EXPECT_EQ(back.verdict.where, finding.verdict.where);
  std::ifstream line(path / "case.txt");
  std::string text;
  std::getline(line, text);
  EXPECT_EQ(parse_case(text), finding.shrunk);
}

TEST_F(FindingFiles, ATruthHasTheAxesOfItsQuestion) {
  const Problem problem = parse_problem("q=2x4x3x2 kv=2x5x3 causal");
  TensorsFile file{.problem = problem, .values = {}};
  file.values.q = Tensor(Format::f32, {2, 4, 3, 2});
  file.values.k = Tensor(Format::f32, {2, 2, 5, 2});
  file.values.v = Tensor(Format::f32, {2, 2, 5, 3});
  for (Tensor* tensor : {&file.values.q, &file.values.k, &file.values.v}) {
    for (Index flat = 0; flat < tensor->count(); ++flat) tensor->set(flat, 0.125 * flat);
  }
  const Certified certified = certified_attention(problem, file.values);
  write_truth_file(folder_ / "heads_first", file, certified);
  file.rows_before_heads = true;
  write_truth_file(folder_ / "rows_first", file, certified);
  const TensorsFile heads = read_tensors_file(folder_ / "heads_first", "");
  const TensorsFile rows = read_tensors_file(folder_ / "rows_first", "");
  EXPECT_FALSE(heads.rows_before_heads);
  EXPECT_TRUE(rows.rows_before_heads);
  EXPECT_EQ(rows.values, heads.values);
  EXPECT_EQ(rows.o, heads.o);
  EXPECT_EQ(rows.lse, heads.lse);
  const MappedFile mapped(folder_ / "rows_first");
  const Safetensors content = parse_safetensors(mapped.bytes(), "rows_first");
  const auto shape_of = [&](const char* name) { return content.find(name)->shape; };
  EXPECT_EQ(shape_of("q"), (std::vector<Index>{2, 3, 4, 2}));
  EXPECT_EQ(shape_of("v"), (std::vector<Index>{2, 5, 2, 3}));
  for (const char* name : {"o", "o_truth", "o_tail", "o_radius"}) {
    EXPECT_EQ(shape_of(name), (std::vector<Index>{2, 3, 4, 3})) << name;
  }
  EXPECT_EQ(shape_of("lse_truth"), (std::vector<Index>{2, 4, 3}));
}

TEST_F(FindingFiles, AreNamedByPropertyAndCaseAlone) {
  Finding finding = sample_run().findings[0];
  finding.shrunk = rich_case();
  const auto first = write_finding(folder_, finding, rich_values(), "", "");
  EXPECT_EQ(write_finding(folder_, finding, rich_values(), "other", ""), first);
  EXPECT_EQ(read_finding(first).subject, "other");
  finding.shrunk.seed = 4;
  EXPECT_NE(write_finding(folder_, finding, rich_values(), "", ""), first);
  std::size_t folders = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder_)) ++folders;
  EXPECT_EQ(folders, 2U);  // and nothing half written
}

TEST_F(FindingFiles, ThatAreDamagedAreRefused) {
  Finding finding = sample_run().findings[0];
  finding.shrunk = rich_case();
  const auto path = write_finding(folder_, finding, rich_values(), "", "");
  EXPECT_THROW(read_finding(folder_), Error);
  const auto tensors = path / "tensors.safetensors";
  std::filesystem::resize_file(tensors, std::filesystem::file_size(tensors) - 1);
  EXPECT_THROW(read_finding(path), Error);
  Values other;
  other.q = other.k = other.v = Tensor(Format::f32, {1, 1, 1, 1});
  write_tensors_file(tensors, parse_problem("q=1x1x1x1 kv=1x1x1"), other);
  try {
    read_finding(path);
    ADD_FAILURE() << "tensors of another problem were taken";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("holds tensors of \"q=1x1x1x1 kv=1x1x1\""),
              std::string::npos)
        << error.what();
  }
  EXPECT_THROW(write_finding("/proc/attest", finding, rich_values(), "", ""), Error);
}

TensorsFile asked(const char* line) {
  TensorsFile file;
  file.problem = parse_problem(line);
  file.values = make_values({.problem = file.problem});
  return file;
}

TEST_F(FindingFiles, CertifiedTruthIsWrittenWithItsRadii) {
  Certified certified;
  certified.truth = {.extent = {1, 1, 2, 1},
                     .o = {0.1, 0.2},
                     .lse = {-INFINITY, 1},
                     .o_tail = {1e-20, 0},
                     .lse_tail = {0, 0}};
  certified.o_radius = {1e-16, 1e-30};
  certified.lse_radius = {0, 2e-16};
  certified.tier = {Tier::f64, Tier::double_double};
  write_truth_file(folder_ / "t.safetensors", asked("q=1x1x2x1 kv=1x3x1"), certified);
  const MappedFile file(folder_ / "t.safetensors");
  const Safetensors content = parse_safetensors(file.bytes(), "t");
  EXPECT_EQ(content.metadata.at("tiers"), "f64=1 double_double=1");
  EXPECT_EQ(content.find("o_radius")->shape, (std::vector<Index>{1, 1, 2, 1}));
  EXPECT_EQ(content.find("lse_radius")->shape, (std::vector<Index>{1, 1, 2}));
  const auto* radius = reinterpret_cast<const double*>(content.find("o_radius")->bytes.data());
  EXPECT_EQ(radius[1], 1e-30);
}

TEST_F(FindingFiles, TruthIsWrittenWithItsDigitsAndWhatItFollowsFrom) {
  const TensorsFile asked_for = asked("q=1x1x2x2 kv=1x3x1 in=bf16 out=f16 bias sinks");
  const Truth truth{.extent = {1, 1, 2, 1},
                    .o = {0.1, 0.2},
                    .lse = {-INFINITY, 1},
                    .o_tail = {1e-20, 0},
                    .lse_tail = {0, 0}};
  write_truth_file(folder_ / "t.safetensors", asked_for, truth, 50);
  const MappedFile file(folder_ / "t.safetensors");
  const Safetensors content = parse_safetensors(file.bytes(), "t");
  EXPECT_EQ(content.metadata.at("digits"), "50");
  EXPECT_EQ(content.find("o_truth")->shape, (std::vector<Index>{1, 1, 2, 1}));
  EXPECT_EQ(content.find("lse_truth")->shape, (std::vector<Index>{1, 1, 2}));
  EXPECT_EQ(content.find("o_truth")->dtype, Dtype::F64);
  EXPECT_EQ(content.find("o")->dtype, Dtype::F16) << "as a kernel would answer";
  EXPECT_EQ(content.find("lse")->dtype, Dtype::F32);
  const auto* lse = reinterpret_cast<const double*>(content.find("lse_truth")->bytes.data());
  EXPECT_EQ(lse[0], -INFINITY);
  // Whoever reads it has the question, too.
  const TensorsFile read = read_tensors_file(folder_ / "t.safetensors", "");
  EXPECT_EQ(read.problem, asked_for.problem);
  EXPECT_EQ(read.values.q, asked_for.values.q);
  EXPECT_EQ(read.values.k, asked_for.values.k);
  EXPECT_EQ(read.values.v, asked_for.values.v);
  EXPECT_EQ(*read.values.bias, *asked_for.values.bias);
  EXPECT_EQ(*read.values.sinks, *asked_for.values.sinks);
  EXPECT_EQ((*read.o)[0], 0x1.998p-4) << "0.1 in f16";
}

}  // namespace
}  // namespace attest
