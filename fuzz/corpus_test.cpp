// What is written is read again; what is not a corpus says where.
#include "fuzz/corpus.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

#include "properties/domains/domain.hpp"
#include "reference/text.hpp"

namespace attest {
namespace {

namespace fs = std::filesystem;

class Corpus : public testing::Test {
 protected:
  Corpus() { fs::remove_all(folder_); }
  ~Corpus() override { fs::remove_all(folder_); }
  void write(const std::string& name, const std::string& text) const {
    fs::create_directories(folder_);
    std::ofstream(folder_ / name) << text;
  }
  std::string error() const {
    try {
      read_corpus(folder_);
      read_place(folder_);
    } catch (const Error& thrown) {
      return thrown.what();
    }
    return {};
  }
  const fs::path folder_ =
      fs::temp_directory_path() / ("attest_corpus_" + std::to_string(getpid()));
};

TEST_F(Corpus, KeepsWhatIsAddedOnce) {
  std::vector<PropertyCase> checks;
  for (std::uint64_t index = 0; index < 5; ++index) {
    checks.push_back({"first", draw_case("first", 3, index)});
    const fs::path path = add_to_corpus(folder_, checks.back(), "a test");
    EXPECT_EQ(add_to_corpus(folder_, checks.back(), "again"), path);
  }
  const std::vector<PropertyCase> read = read_corpus(folder_);
  ASSERT_EQ(read.size(), checks.size());
  for (const PropertyCase& check : checks) EXPECT_EQ(std::ranges::count(read, check), 1);
}

TEST_F(Corpus, SkipsCommentsAndOtherFiles) {
  write("a.case", "# origin\n\n   \nfirst " + print(draw_case("first", 1, 0)) + "\nsecond " +
                      print(Case{}) + "\n");
  write("b.txt", "nonsense");
  EXPECT_EQ(read_corpus(folder_).size(), 2U);
  EXPECT_TRUE(read_corpus(folder_ / "nowhere").empty());
}

TEST_F(Corpus, SaysFileAndLineOfWhatItCannotRead) {
  write("a.case", "# origin\nfirst what=1\n");
  EXPECT_NE(error().find("a.case:2: "), std::string::npos) << error();
  write("a.case", print(draw_case("first", 1, 0)) + "\n");
  EXPECT_NE(error().find("a.case:1: the line names no property"), std::string::npos) << error();
}

TEST_F(Corpus, RemembersItsPlace) {
  EXPECT_EQ(read_place(folder_), std::nullopt);
  const CampaignPlace place{7, 123456789012, "first,second", "./my own.so"};
  write_place(folder_, place);
  EXPECT_EQ(read_place(folder_), place);
  const CampaignPlace narrow{7, 12, "first", "./my own.so", "in=bf16 causal"};
  write_place(folder_, narrow);
  EXPECT_EQ(read_place(folder_), narrow);
  write("place.txt", "seed seven");
  EXPECT_NE(error().find("remove it to begin anew"), std::string::npos) << error();
}

TEST_F(Corpus, SaysSoWhenItCannotWrite) {
  write("file", "");
  EXPECT_THROW(write_place(folder_ / "file", {}), Error);
  EXPECT_THROW(add_to_corpus(folder_ / "file", {"first", {}}, "a test"), Error);
}

}  // namespace
}  // namespace attest
