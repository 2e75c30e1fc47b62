// Every command on good and on bad words. Plugins that go wrong are bad_plugin_test's business,
// signals interruption_test's.
#include <sys/stat.h>

#include <algorithm>
#include <thread>

#include "reports/commands/testing/ran.hpp"

namespace attest {
namespace {

namespace fs = std::filesystem;

TEST_F(CommandLine, TeachesItself) {
  EXPECT_EQ(run("--version").out.find("attest "), 0U);
  const Ran help = run("--help");
  EXPECT_EQ(help.exit_code, 0);
  for (const char* part : {"Examples:", "attest replay", "Exit code 0", "footprint"}) {
    EXPECT_NE(help.out.find(part), std::string::npos) << part;
  }
  for (const char* command : {"gate", "fuzz", "run", "replay", "compare", "oracle", "judge",
                              "measure", "footprint", "list"}) {
    const Ran one = run(std::string(command) + " --help");
    EXPECT_EQ(one.exit_code, 0) << command;
    EXPECT_NE(one.out.find(std::string("Example:\n  attest ") + command), std::string::npos)
        << one.out;
  }
}

TEST_F(CommandLine, UnknownWordsAreRefusedWithTheNearest) {
  refuses("", {"subcommand"});
  refuses("gates", {"'gates' is not known", "did you mean 'gate'?"});
  refuses("gate --sed 3", {"'--sed'", "did you mean '--seed'?"});
  refuses("gate --seed three", {"three"});
  refuses("gate --threads 0", {"--threads"});
  refuses("gate --cases -1", {"--cases", "negative"});
  refuses("gate --seed -1", {"--seed", "negative"});
  refuses("gate --case-seconds nan", {"--case-seconds", "nan"});
  refuses("gate --case-seconds 1e300", {"--case-seconds"});
  refuses("gate --subject skeletn", {"'skeletn'", "did you mean 'skeleton'?"});
  refuses("gate --subject skeleton --device emulatd", {"did you mean 'emulated'?"});
  refuses("gate --subject skeleton --properties row_sums,causalty", {"did you mean 'causality'?"});
  refuses("gate --subject skeleton --budget soon", {"--budget", "'soon'", "45s"});
  for (const char* command : {"gate", "fuzz", "replay 'q=1x1x1x1 kv=1x1x1'"}) {
    const std::string words = std::string(command) + " --subject skeleton ";
    refuses(words + "--numerics sm_81", {"--numerics", "'sm_81'", "did you mean 'sm_80'?"});
    refuses(words + "--checks all,racechek", {"--checks", "did you mean 'racecheck'?"});
    refuses(words + "--schedule -1", {"--schedule", "negative"});
  }
  refuses("gate --subject skeleton --schedule drwan", {"--schedule", "'drwan'"});
  refuses("replay 'q=1x1x1x1 kv=1x1x1' --subject skeleton --numerics drawn", {"--numerics"});
  refuses("replay 'q=1x1x1x1 kv=1x1x1' --subject skeleton --schedule drawn", {"--schedule"});
  refuses("run --numerics drawn -- /bin/true", {"--numerics"});
  refuses("list fils", {"did you mean 'fills'?"});
  refuses("footprint --layers 1 --num-heads-kv 1 --head-dim 1 --tokens 1 --format bf1",
          {"did you mean 'bf16'?"});
}

TEST_F(CommandLine, BadCasesAreRefusedWithColumnAndReason) {
  refuses("replay 'q=1x2x3 kv=1x1x1'", {"column 3", "takes 4"});
  refuses("replay 'q=1x1x1x1 kv=1x1x1 causel'", {"column 20", "did you mean 'causal'?"});
  refuses("replay 'causality q=1x1x1x1 kv=1x1x1 causel'", {"column 30"});
  refuses("replay 'causalty q=1x1x1x1 kv=1x1x1'", {"did you mean 'causality'?"});
  refuses("replay 'q=1x3x1x1 kv=2x1x1'", {"impossible"});
  refuses("replay 'q=1x1x1x1 kv=1x1x1 fill=needel'", {"did you mean 'needle'?"});
  refuses("replay ''", {"empty"});
  refuses("replay 'q=1x1x1x1 kv=1x1x1' --property rerum", {"did you mean 'rerun'?"});
  refuses("oracle 'q=1x1x1x1 kv=1x1x1 in=f61'", {"f16"});
  refuses("oracle 'q=1x1x1x1 kv=1x1x1' --digits 60", {"50", "100"});
}

TEST_F(CommandLine, BadTensorFilesAreRefused) {
  const auto write = [&](const std::string& name, const std::string& header, std::uint64_t length,
                         std::size_t payload) {
    std::ofstream file(folder_ / name, std::ios::binary);
    for (int i = 0; i < 8; ++i) file.put(static_cast<char>(length >> (8 * i)));
    file << header << std::string(payload, '\0');
  };
  const std::string honest = R"({"q":{"dtype":"F32","shape":[1,1,1,1],"data_offsets":[0,4]},)"
                             R"("k":{"dtype":"F32","shape":[1,1,1,1],"data_offsets":[4,8]},)"
                             R"("v":{"dtype":"F32","shape":[1,1,1,1],"data_offsets":[8,12]}})";
  write("honest.safetensors", honest, honest.size(), 12);
  EXPECT_EQ(run("oracle honest.safetensors").exit_code, 0);
  EXPECT_EQ(run("replay honest.safetensors --subject skeleton").exit_code, 0);

  write("short.safetensors", honest, honest.size(), 5);
  write("empty.safetensors", "", 0, 0);
  write("huge.safetensors", honest, ~0ULL, 12);
  write("beyond.safetensors", honest, honest.size() + 13, 12);
  std::string lying = honest;
  lying.replace(lying.find("[1,1,1,1]"), 9, "[1,1,1,9]");
  write("lying.safetensors", lying, lying.size(), 12);
  write("noise.safetensors", std::string(honest.size(), '{'), honest.size(), 12);
  for (const char* name : {"short", "empty", "huge", "beyond", "lying", "noise", "missing"}) {
    const std::string file = std::string(name) + ".safetensors";
    refuses("oracle " + file, {file});
    refuses("replay " + file + " --subject skeleton", {file});
  }
  refuses("replay .", {"verdict.json"});
}

TEST_F(CommandLine, AReportFolderThatCannotBeWrittenIsRefusedBeforeAnythingRuns) {
  std::ofstream(folder_ / "file") << "in the way";
  refuses("gate --subject skeleton --report file/report", {"file/report"});
  refuses("fuzz --subject skeleton --cases 10 --corpus file/corpus", {"file/corpus"});
  EXPECT_EQ(run("gate --subject skeleton --report file/report").out, "");
}

TEST_F(CommandLine, ARightSubjectPassesAndLeavesItsReports) {
  const Ran ran = run("gate --subject skeleton --cases 400 --seed 11");
  EXPECT_EQ(ran.exit_code, 0) << ran.out << ran.err;
  EXPECT_EQ(ran.out.find("attest "), 0U);
  EXPECT_NE(ran.out.substr(0, ran.out.find('\n')).find("seed 11"), std::string::npos);
  for (const char* name : {"run.json", "junit.xml", "summary.md", "cases.log"}) {
    EXPECT_GT(fs::file_size(folder_ / "attest-report" / name), 0U) << name;
  }
  const std::string journal = text_of(folder_ / "attest-report" / "cases.log");
  EXPECT_GE(std::ranges::count(journal, '\n'), 400);
  EXPECT_TRUE(fs::is_empty(folder_ / "attest-report" / "findings"));
}

TEST_F(CommandLine, ARunThatCannotBeginLeavesNoReportOfAnEarlierOne) {
  EXPECT_EQ(run("gate --subject skeleton --cases 500 --report kept").exit_code, 0);
  EXPECT_EQ(text_of(folder_ / "kept" / "run.json").find("absent.so"), std::string::npos);
  refuses("gate --subject ./absent.so --report kept", {"absent.so"});
  for (const char* name : {"junit.xml", "run.json", "summary.md"}) {
    EXPECT_NE(text_of(folder_ / "kept" / name).find("no such file"), std::string::npos) << name;
  }
}

TEST_F(CommandLine, AResultThatNobodyCanReadIsNone) {
  const std::string program = std::string("'").append((bin() / "attest").string()).append("'");
  for (const char* words : {"list properties", "replay 'q=1x1x1x1 kv=1x1x1' --subject skeleton"}) {
    const int status = std::system((program + " " + words + " >/dev/full 2>/dev/null").c_str());
    EXPECT_EQ(WEXITSTATUS(status), 2) << words;
  }
}

TEST_F(CommandLine, OracleReplacesNeitherLinksNorPipes) {
  std::ofstream(folder_ / "target") << "old";
  fs::create_symlink("target", folder_ / "link");
  EXPECT_EQ(run("oracle 'q=1x1x1x1 kv=1x1x1' -o link").exit_code, 0);
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_GT(fs::file_size(folder_ / "target"), 8U);
  ASSERT_EQ(mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  std::string through;
  std::thread reader([&] { through = text_of(folder_ / "pipe"); });
  EXPECT_EQ(run("oracle 'q=1x1x1x1 kv=1x1x1' -o pipe").exit_code, 0);
  reader.join();
  EXPECT_TRUE(fs::is_fifo(folder_ / "pipe"));
  EXPECT_EQ(through, text_of(folder_ / "target"));
}

TEST_F(CommandLine, TheSameSeedTellsTheSameStory) {
  const auto table = [&](const std::string& words) {
    const std::string out = run("gate --subject skeleton --cases 150 " + words).out;
    return out.substr(out.find('\n'));
  };
  EXPECT_EQ(table("--threads 1"), table("--threads 3"));
  EXPECT_NE(table("--seed 1"), table("--seed 2"));
}

TEST_F(CommandLine, FuzzGoesOnWhereItWas) {
  const std::string words = "fuzz --subject skeleton --cases 130 --corpus kept";
  EXPECT_NE(run(words).out.find("fuzzing 'skeleton'"), std::string::npos);
  const std::string place = text_of(folder_ / "kept" / "place.txt");
  // Numbers of properties that are not served are passed over.
  const auto next = [&](const std::string& text) {
    return std::stoul(text.substr(text.find("next ") + 5));
  };
  const unsigned long first = next(place);
  EXPECT_GE(first, 130U) << place;
  EXPECT_NE(run(words).out.find("going on fuzzing"), std::string::npos);
  EXPECT_GE(next(text_of(folder_ / "kept" / "place.txt")), first + 130);
  EXPECT_EQ(run(words + " --seed 2").out.find("going on"), std::string::npos)
      << "another seed means other cases: there is nothing to go on with";
}

TEST_F(CommandLine, ReplayShowsDigestsThatStay) {
  const std::string words =
      "replay 'oracle_agreement q=1x2x3x8 kv=1x5x8 causal' --subject skeleton";
  const Ran first = run(words);
  EXPECT_EQ(first.exit_code, 0) << first.out << first.err;
  EXPECT_NE(first.out.find("oracle_agreement: holds"), std::string::npos) << first.out;
  EXPECT_NE(first.out.find("o "), std::string::npos);
  EXPECT_EQ(first.out, run(words).out);
  EXPECT_NE(first.out, run("replay 'oracle_agreement q=1x2x3x8 kv=1x5x8 causal seed=1' "
                           "--subject skeleton")
                           .out);
  EXPECT_EQ(run("replay 'projection_agreement q=1x1x1x1 kv=1x1x1' --subject skeleton").exit_code, 2)
      << "what is declined shows nothing";
}

TEST_F(CommandLine, OracleSaysHowFarTheTruthMayBe) {
  const Ran ran = run("oracle 'q=1x2x9x16 kv=1x9x16 causal' -o truth.safetensors");
  EXPECT_EQ(ran.exit_code, 0) << ran.err;
  EXPECT_NE(ran.out.find("computed in: f64=18\n"), std::string::npos) << ran.out;
  EXPECT_GT(fs::file_size(folder_ / "truth.safetensors"), 3U * 2 * 9 * 16 * 8);
}

TEST_F(CommandLine, OracleTurnsNoAxesInSilence) {
  const std::string header = R"({"q":{"dtype":"F32","shape":[1,4,2,1],"data_offsets":[0,32]},)"
                             R"("k":{"dtype":"F32","shape":[1,4,2,1],"data_offsets":[32,64]},)"
                             R"("v":{"dtype":"F32","shape":[1,4,2,1],"data_offsets":[64,96]}})";
  std::ofstream file(folder_ / "mine.safetensors", std::ios::binary);
  for (int i = 0; i < 8; ++i) file.put(static_cast<char>(header.size() >> (8 * i)));
  file << header << std::string(96, '\0') << std::flush;
  const Ran guessed = run("oracle mine.safetensors");
  EXPECT_NE(guessed.out.find("axes read as (batch, head, token, width): 4 KV heads of 2 keys; are "
                             "these not tokens before heads? Then say --problem layout=bthd"),
            std::string::npos)
      << guessed.out;
  const Ran told = run("oracle mine.safetensors --problem layout=bthd");
  EXPECT_NE(told.out.find("axes (batch, token, head, width), as the tensors had"),
            std::string::npos)
      << told.out;
  EXPECT_NE(text_of(folder_ / "oracle.safetensors").find("[1,4,2,1]"), std::string::npos);
  EXPECT_EQ(run("judge oracle.safetensors --path f32").exit_code, 2) << "zeros are right here";
}

TEST_F(CommandLine, OracleMakesAFileThatCanBeJudged) {
  for (const char* line :
       {"q=1x4x9x16 kv=2x9x16 causal in=bf16 out=bf16",
        "q=2x4x5x8 kv=2x7x8 in=f16 out=f16 causal window=3,0 bias alibi sinks mask q_len=5,3 "
        "kv_len=7,2 lse=two layout=bthd cache=e4m3 scales=head",
        "q=1x1x3x4 kv=1x2x4 softcap=3 empty=nan causal"}) {
    for (const char* digits : {"", " --digits 50"}) {
      const Ran asked = run("oracle '" + std::string(line) + "' -o f.safetensors" + digits);
      EXPECT_EQ(asked.exit_code, 0) << line << asked.err;
      const Ran judged = run("judge f.safetensors --path f32");
      EXPECT_EQ(judged.exit_code, 0) << line << judged.out << judged.err;
      EXPECT_NE(judged.out.find(", 0 refused"), std::string::npos) << judged.out;
      EXPECT_EQ(judged.out.find(" inf at"), std::string::npos) << judged.out;
    }
    // Its tensors are those of the line: the truth of both is the same.
    EXPECT_EQ(run("oracle f.safetensors -o g.safetensors --digits 50").exit_code, 0);
    EXPECT_EQ(text_of(folder_ / "f.safetensors"), text_of(folder_ / "g.safetensors")) << line;
  }
}

TEST_F(CommandLine, AMissingFileIsNoCaseLine) {
  for (const char* command : {"oracle", "replay", "judge"}) {
    for (const char* file : {"absent.safetensors", "no/where", "absent.st"}) {
      refuses(std::string(command) + " " + file, {file, "No such file"});
    }
  }
  refuses("oracle 'q=1x1x1x1 kv=1x1x1 scale=0.5 fil=x'", {"did you mean 'fill'?"});
  refuses("replay causalty", {"did you mean 'causality'?"});
}

TEST_F(CommandLine, OracleSaysHowManyDigitsItCertifies) {
  for (const char* digits : {"50", "100"}) {
    const Ran ran = run("oracle 'q=1x2x9x16 kv=1x9x16 causal' -o truth.safetensors --digits " +
                        std::string(digits));
    EXPECT_EQ(ran.exit_code, 0) << ran.err;
    EXPECT_NE(ran.out.find("31 digits are certified"), std::string::npos) << ran.out;
    EXPECT_GT(fs::file_size(folder_ / "truth.safetensors"), 2U * 9 * 16 * 8);
  }
  refuses("oracle 'q=1x1x1x1 kv=1x1x1' -o no/where/truth.safetensors", {"no/where"});
}

TEST_F(CommandLine, FootprintIsExact) {
  const Ran ran =
      run("footprint --layers 61 --num-heads-kv 1 --head-dim 576 --head-dim-v 512 --tokens 131072 "
          "--batch 3 "
          "--format e4m3");
  EXPECT_EQ(ran.exit_code, 0);
  EXPECT_NE(
      ran.out.find(
          "61 layers x 1 KV heads x (576 key width + 512 value width) x 131072 tokens x 3 batch "
          "x 1 bytes (e4m3) = 26096959488 bytes"),
      std::string::npos)
      << ran.out;
  EXPECT_NE(
      run("footprint --layers 2 --num-heads-kv 3 --head-dim 5 --tokens 7 --batch 11 --format f32")
          .out.find(" = 18480 bytes"),
      std::string::npos);
  refuses("footprint --layers 4294967296 --num-heads-kv 4294967296 --head-dim 1 --tokens 1",
          {"2^64"});
}

TEST_F(CommandLine, MeasuresAGrid) {
  const std::string grid =
      "measure --subject skeleton --lengths 5,9 --widths 4 --formats f32 --fills normal,ramp "
      "--rows 8 ";
  const Ran ran = run(grid + "--json now.json");
  EXPECT_EQ(ran.exit_code, 0) << ran.out << ran.err;
  EXPECT_NE(ran.out.find("in 4 cells"), std::string::npos) << ran.out;
  EXPECT_NE(ran.out.find("all cells: call prefill, width 4, formats f32"), std::string::npos);
  EXPECT_NE(ran.out.find("tiers: `attest list` says"), std::string::npos) << ran.out;
  EXPECT_EQ(
      ran.last_line(),
      "measured 104 numbers of O in 4 cells; all lie within their bounds");  // 2 * 4 * (5 + 8)
  const std::string json = text_of(folder_ / "now.json");
  EXPECT_NE(json.find("\"case\": \"q=1x1x5x4 kv=1x5x4 causal seed=1\""), std::string::npos) << json;
  EXPECT_EQ(ran.out, run(grid + "--threads 1").out);
  EXPECT_NE(ran.out, run(grid + "--seed 2").out);
  const Ran declined = run("measure --subject skeleton --formats bf16 --lengths 4 --widths 4");
  EXPECT_EQ(declined.exit_code, 2);
  EXPECT_NE(declined.last_line().find("nothing was measured: the subject declined 2 of 2 cells"),
            std::string::npos);
  const Ran own = run("measure --subject skeleton --case 'decode q=2x1x1x4 kv=1x7x4' ");
  EXPECT_EQ(own.exit_code, 0) << own.err;
  EXPECT_NE(own.out.find("all cells: call decode, length 7"), std::string::npos) << own.out;
}

TEST_F(CommandLine, ComparesWithAnEarlierMeasurement) {
  const std::string grid = "measure --subject skeleton --lengths 5 --widths 4 --formats f32 ";
  EXPECT_EQ(run(grid + "--json before.json").exit_code, 0);
  const Ran same = run(grid + "--compare before.json");
  EXPECT_EQ(same.exit_code, 0) << same.out << same.err;
  EXPECT_NE(same.out.find("2 cells compared: 0 worse, 0 better, 0 warned of, 2 with the same "
                          "figures to the last bit"),
            std::string::npos)
      << same.out;
  const Ran other = run(grid + "--seed 2 --compare before.json");
  EXPECT_EQ(other.exit_code, 2) << "other cells";
  EXPECT_NE(other.out.find("nothing can be compared"), std::string::npos) << other.out;
  refuses(grid + "--compare absent.json", {"absent.json"});
  std::ofstream(folder_ / "wrong.json") << "{\"schema\": 1}";
  refuses(grid + "--compare wrong.json", {"wrong.json: version is missing"});
  EXPECT_EQ(run(grid + "--compare wrong.json").out, "") << "read before anything is measured";
}

TEST_F(CommandLine, BadGridsAreRefused) {
  const std::string measure = "measure --subject skeleton ";
  refuses(measure + "--lengths 64,6x", {"--lengths", "'6x'"});
  refuses(measure + "--widths 0", {"--widths", "'0'"});
  refuses(measure + "--rows 0", {"--rows"});
  refuses(measure + "--formats bf17", {"--formats", "did you mean 'bf16'?"});
  refuses(measure + "--outputs f61", {"--outputs", "f32, f16"});
  refuses(measure + "--fills norml", {"--fills", "did you mean 'normal'?"});
  refuses(measure + "--operation append", {"--operation", "prefill or decode"});
  refuses(measure + "--problem causel", {"'causel'", "did you mean 'causal'?", "the cell is"});
  refuses(measure + "--case 'q=1x1x1 kv=1x1x1'", {"column 3"});
  refuses(measure + "--json no/where/now.json", {"no/where/now.json"});
  refuses(measure + "--call 'decode q=1x1x1x1 kv=1x1x1'", {"--call", "--cost"});
  refuses(measure + "--cost --json now.json", {"--cost", "--json"});
}

TEST_F(CommandLine, ListsWhatItsCataloguesHold) {
  const Ran ran = run("list");
  EXPECT_EQ(ran.exit_code, 0);
  for (const char* part : {"causality", "needle", "bf16", "skeleton", "drops_one_key", "window",
                           "sm_90", "worst:SEED", "racecheck", "fa2", "p_format=FORMAT"}) {
    EXPECT_NE(ran.out.find(part), std::string::npos) << part;
  }
  EXPECT_EQ(run("list formats").out.find("f32"), 0U);
  EXPECT_NE(run("list formats").out.find("i8    8 bits, in caches only\n"), std::string::npos);
  EXPECT_NE(run("list precision")
                .out.find("keys_per_rescale=KEYS              least number of keys between "
                          "two rescales; 1: unknown; default 1, or kv_block"),
            std::string::npos);
}

// Words that people read on a page are those that the program prints.
TEST_F(CommandLine, PagesHoldTheLists) {
  for (const auto& [what, page] : {std::pair{"case", "reference/README.md"},
                                   {"tensors", "reports/README.md"},
                                   {"metadata", "reports/README.md"}}) {
    const std::string list = run(std::string("list ") + what).out;
    std::string block = "\n";
    for (std::size_t start = 0; start < list.size();) {
      const std::size_t stop = list.find('\n', start) + 1;
      block += "    " + list.substr(start, stop - start);
      start = stop;
    }
    EXPECT_GT(block.size(), 200U);
    EXPECT_NE(text_of(fs::path(ATTEST_SOURCE) / page).find(block), std::string::npos)
        << page << " does not hold what `attest list " << what << "` prints, indented:" << block;
  }
}

// What tables and files call things, help explains.
TEST_F(CommandLine, EveryNameOfAMeasurementIsListed) {
  for (const auto& [what, names] :
       {std::pair{"bounds", "order_free running quantised"},
        {"directions", "inward offset scattered sharper others row element chi_square"},
        {"biases", "weights output scale exponential"},
        {"stages", "scores exp p_cast row_sum pv output_cast"},
        {"tiers", "f64 double_double fifty hundred two_hundred"}}) {
    const std::string list = run(std::string("list ") + what).out;
    std::string seen;
    for (std::size_t start = 0; start < list.size(); start = list.find('\n', start) + 1) {
      const std::string line = list.substr(start, list.find('\n', start) - start);
      if (!seen.empty()) seen += ' ';
      seen += line.substr(0, line.find(' '));
      EXPECT_GT(line.size(), line.find_first_not_of(' ', line.find(' ')) + 5) << line;
    }
    EXPECT_EQ(seen, names);
    EXPECT_NE(run("measure --help").out.find(what), std::string::npos) << what;
  }
}

}  // namespace
}  // namespace attest
