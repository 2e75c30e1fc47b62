// `attest measure` on our kernels: what it says of them, that it finds a change of their
// arithmetic, and that a change of nothing but the order of blocks is none.
#include "reports/commands/testing/ran.hpp"
#include "reports/strict_json.hpp"

namespace attest {
namespace {

class Measure : public CommandLine {
 protected:
  const std::string grid_ = "measure --lengths 96 --widths 32 --formats bf16,f32 --rows 64 ";

  nlohmann::json json(const std::string& name) const {
    return parse_strictly(text_of(folder_ / name), name);
  }
};

TEST_F(Measure, OurKernelsErrAsTheyDeclare) {
  const Ran ran = run(grid_ + "--json now.json");
  EXPECT_EQ(ran.exit_code, 0) << ran.out << ran.err;
  EXPECT_NE(ran.last_line().find("in 4 cells; all lie within their bounds"), std::string::npos);
  for (const auto& cell : json("now.json")["cells"]) {
    const std::string line = cell["case"];
    EXPECT_EQ(cell["o"]["elements"], 64 * 32) << line;
    EXPECT_EQ(cell["tiers"]["f64"].get<int>() + cell["tiers"]["double_double"].get<int>(), 64);
    ASSERT_TRUE(cell["o"]["z"].is_object()) << line << cell["o"]["uncalibrated"];
    EXPECT_TRUE(cell["o"]["z"]["alarms"].empty()) << line;
    const bool bf16 = line.find("bf16") != std::string::npos;
    const double p_cast = cell["stages"]["p_cast"]["share"];
    EXPECT_EQ(p_cast > 0, bf16) << line;
    if (bf16) {
      EXPECT_GT(p_cast + cell["stages"]["output_cast"]["share"].get<double>(), 0.99) << line;
    }
  }
}

TEST_F(Measure, WithoutAnLseOnlyOIsMeasured) {
  const Ran ran = run("measure --case 'q=1x1x20x8 kv=1x19x8 lse=none' --json now.json");
  EXPECT_EQ(ran.exit_code, 0) << ran.out << ran.err;
  const auto cell = json("now.json")["cells"][0];
  EXPECT_EQ(cell["o"]["elements"], 160);
  EXPECT_EQ(cell["lse"]["elements"], 0);
}

TEST_F(Measure, ComparesTwoRuns) {
  EXPECT_EQ(run(grid_ + "--json before.json").exit_code, 0);
  const Ran order = run(grid_ + "--schedule 5 --compare before.json");
  EXPECT_EQ(order.exit_code, 0) << order.out;
  EXPECT_NE(order.out.find("4 with the same figures to the last bit"), std::string::npos)
      << order.out;
  // H100's tensor cores cut elsewhere; beside a P of 8 bits that is nothing.
  const Ran model = run(grid_ + "--numerics sm_90 --compare before.json");
  EXPECT_EQ(model.exit_code, 0) << model.out;
  EXPECT_EQ(model.out.find(" worse: "), std::string::npos) << model.out;
}

TEST_F(Measure, OtherTensorCoresAreNotWorse) {
  // They move every row by a little to one side, which so many rows would show.
  const std::string fills =
      "measure --lengths 200 --widths 64 --formats bf16,f16 --outputs f32 "
      "--fills small,integers,signs,rising_maxima,previous_token ";
  EXPECT_EQ(run(fills + "--json before.json").exit_code, 0);
  const Ran model = run(fills + "--numerics sm_90 --compare before.json");
  EXPECT_EQ(model.exit_code, 0) << model.out;
  EXPECT_NE(model.out.find("10 cells compared: 0 worse, "), std::string::npos) << model.out;
}

TEST_F(Measure, FindsExponentialsThatErrMore) {
  // They err as much as is documented instead of rounding correctly: legal, within every bound.
  const std::string f32 =
      "measure --lengths 64 --widths 64 --formats f32 --fills normal --rows 256 ";
  EXPECT_EQ(run(f32 + "--json before.json").exit_code, 0);
  const Ran worst = run(f32 + "--numerics sm_80+worst:3 --compare before.json");
  EXPECT_EQ(worst.exit_code, 1) << worst.out << worst.err;
  EXPECT_NE(worst.out.find("cell 1 worse: the error grew in"), std::string::npos) << worst.out;
  EXPECT_NE(worst.last_line().find("all lie within their bounds"), std::string::npos) << worst.out;
}

TEST_F(Measure, DecodeOverACacheToo) {
  const Ran ran =
      run("measure --operation decode --lengths 100 --widths 64 --formats f16 --outputs f16,f32 "
          "--fills normal --rows 16 --problem 'splits=3 cache=e4m3 scales=head page=16 order=1'");
  EXPECT_EQ(ran.exit_code, 0) << ran.out << ran.err;
  EXPECT_NE(ran.out.find("all cells: call decode, length 100, width 64"), std::string::npos);
  EXPECT_NE(ran.out.find("f16/e4m3>f32"), std::string::npos) << ran.out;
}

}  // namespace
}  // namespace attest
