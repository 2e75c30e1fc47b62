// A gate that is told with --where what to judge, as its users meet it.
#include "reports/commands/testing/ran.hpp"

namespace attest {
namespace {

TEST_F(CommandLine, OnlyWhatIsAskedForIsJudged) {
  EXPECT_NE(run("gate --help").out.find("--where"), std::string::npos);
  EXPECT_NE(run("list where").out.find("head_dim=NUMBER"), std::string::npos);
  for (const char* command : {"gate", "fuzz"}) {
    const std::string words = std::string(command) + " --subject skeleton --cases 9 --where ";
    refuses(words + "pge=16", {"--where: 'pge' is no attribute; did you mean page?"});
    refuses(words + "'causal no-causal'", {"contradict"});
    EXPECT_EQ(run(words + "pge=16").out, "");
  }
  const Ran ran = run("gate --subject skeleton --cases 400 --where 'head_dim=24 no-causal'");
  EXPECT_EQ(ran.exit_code, 0) << ran.out << ran.err;
  EXPECT_NE(ran.out.find("gating 'skeleton' where head_dim=24 no-causal with 400 cases"),
            std::string::npos)
      << ran.out;
  EXPECT_NE(ran.last_line().find("judged cases where head_dim=24 no-causal"), std::string::npos)
      << ran.last_line();
  EXPECT_NE(text_of(folder_ / "attest-report" / "run.json").find("\"head_dim=24 no-causal\""),
            std::string::npos);
  EXPECT_NE(text_of(folder_ / "attest-report" / "summary.md").find("Nothing is said of others."),
            std::string::npos);
}

}  // namespace
}  // namespace attest
