// `attest compare` where the device is the emulator under a model that is known: it must part from
// the other models and never from its own. What hardware does is beyond this test.
#include "reports/commands/testing/ran.hpp"
#include "reports/strict_json.hpp"

namespace attest {
namespace {

class Compare : public CommandLine {
 protected:
  /// The entry of `model` in the JSON that `words` make.
  nlohmann::json compared(const std::string& words, const std::string& model) const {
    const Ran ran = run("compare --device emulated --out compared.json " + words);
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    const auto json = parse_strictly(text_of(folder_ / "compared.json"), "compared.json");
    for (const auto& each : json["models"]) {
      if (each["model"] == model) return each;
    }
    return nullptr;
  }
};

constexpr const char* kCases = "--cases 150 --numerics sm_90";

TEST_F(Compare, FindsNothingBetweenAModelAndItself) {
  const auto same = compared(kCases, "sm_90");
  // Rows wider than our kernels take are declined.
  EXPECT_EQ(same["cases"].get<int>() + same["declined"].get<int>(), 150);
  EXPECT_GE(same["cases"], 140);
  EXPECT_EQ(same["cases_differ"], 0);
  EXPECT_EQ(same["elements_differ"], 0);
  EXPECT_EQ(same["largest_ulp"], 0);
  EXPECT_TRUE(same["first"].is_null());
  EXPECT_GT(same["elements"], 1000);
}

TEST_F(Compare, CountsAndPlacesWhatDiffers) {
  const auto other = compared(kCases, "f32");
  EXPECT_GT(other["cases_differ"], 0);
  EXPECT_GE(other["elements_differ"], other["cases_differ"]);
  EXPECT_LT(other["elements_differ"], other["elements"]);
  EXPECT_GE(other["largest_ulp"], 1);
  const auto& first = other["first"];
  EXPECT_NE(first["device_bits"], first["emulated_bits"]);
  // The place is real: the case alone says the same again.
  std::string words = "replay --device emulated --property rerun '";
  words += first["case"].get<std::string>() + "'";
  const Ran replayed = run(words);
  EXPECT_EQ(replayed.exit_code, 0) << replayed.err;
}

TEST_F(Compare, SaysWhenItCannotTell) {
  refuses("compare --device emulatd", {"did you mean 'emulated'?"});
  refuses("compare --device emulated --cases -1", {"--cases", "negative"});
  refuses("compare --device emulated --numerics sm_91", {"did you mean 'sm_90'?"});
  refuses("compare --device emulated --cases 0", {"--cases", "at least 1"});
  const Ran unwritable = run("compare --device emulated --cases 1 --out no/where.json");
  EXPECT_EQ(unwritable.exit_code, 2);
  EXPECT_EQ(unwritable.out, "") << "nothing runs when its result has no place";
  EXPECT_NE(unwritable.err.find("no/where.json"), std::string::npos);
}

}  // namespace
}  // namespace attest
