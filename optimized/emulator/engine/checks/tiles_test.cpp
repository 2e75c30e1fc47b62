// Undefined elements of matrices: silence where masks and stores drop them, and a finding with its
// line for each way of using one. Every rule has a program in which it alone decides.
#include <cstdint>
#include <numeric>

#include "optimized/emulator/engine/testing/on_every_set.hpp"

namespace attest::emulator {
namespace {

class Tiles : public OnEverySet {
 protected:
  /// What one run found, or that it went wrong.
  template <class... Arguments>
  std::string found(const std::string& kernel, Arguments... arguments) {
    std::string all = program.trouble(kernel, {{1}, {32}}, arguments...);
    for (const CheckerFinding& f : Device::instance().findings()) all += f.kind + ": " + f.what;
    Device::instance().reset_findings();
    return all;
  }
};
INSTANTIATE_TEST_SUITE_P(All, Tiles, testing::Values("baseline", "avx2", "avx512"),
                         [](const auto& i) { return std::string(i.param); });

bool is_at(const std::string& found, const std::string& line) {
  return found.starts_with("initcheck: ") && found.find(line) != std::string::npos;
}

TEST_P(Tiles, TailsOfAttentionAreDropped) {
  const Buffer<std::uint16_t> q(256, 0x3f80), k(128, 0x3f80), v(128, 0x3f80);
  Buffer<float> o(128);
  for (const int queries : {1, 7, 8, 9, 16}) {
    for (const int keys : {1, 5, 8}) {
      EXPECT_EQ(found("attention_tile", q.data(), k.data(), v.data(), o.data(), queries, keys,
                      queries, keys),
                "")
          << queries << " " << keys;
      for (int i = 0; i < queries * 8; ++i) EXPECT_EQ(o[std::size_t(i)], 1.f);
    }
  }
}
TEST_P(Tiles, TailsOfAttentionThatAreUsed) {
  const Buffer<std::uint16_t> q(256, 0x3f80), k(128, 0x3f80), v(128, 0x3f80);
  Buffer<float> o(128);
  const std::string row =
      found("attention_tile", q.data(), k.data(), v.data(), o.data(), 9, 8, 10, 8);
  EXPECT_TRUE(is_at(row, line_of("loads_queries"))) << row;
  EXPECT_NE(row.find(line_of("stores_rows")), row.npos) << row;
  const std::string key =
      found("attention_tile", q.data(), k.data(), v.data(), o.data(), 16, 5, 16, 6);
  EXPECT_TRUE(is_at(key, line_of("loads_keys"))) << key;
}

TEST_P(Tiles, WmmaByRowColumnAndElement) {
  const std::vector<std::string> kernels{"wmma_f16", "wmma_half_sums", "wmma_bf16", "wmma_tf32",
                                         "wmma_s8"};
  const Buffer<std::uint32_t> in(256);
  Buffer<std::uint32_t> out(256);
  struct Try {
    int a, b, c, rows, columns;
    bool silent;
  };
  for (const std::string& kernel : kernels) {
    for (const Try& t :
         {Try{16, 16, 16, 16, 16, true}, Try{5, 16, 16, 5, 16, true}, Try{5, 16, 16, 6, 16, false},
          Try{16, 9, 16, 16, 9, true}, Try{16, 9, 16, 16, 10, false}, Try{16, 16, 11, 11, 16, true},
          Try{16, 16, 11, 12, 16, false}, Try{11, 6, 13, 11, 6, true}}) {
      const std::string what =
          found(kernel, in.data(), out.data(), t.a, t.b, t.c, t.rows, t.columns);
      EXPECT_EQ(what.empty(), t.silent) << kernel << " " << t.a << " " << t.b << " " << t.c << what;
    }
  }
}

/// Lane 4 g + t: which elements of m16n8 one missing word reaches.
TEST_P(Tiles, MmaByRowColumnAndElement) {
  struct Missing {
    std::size_t word, lane;  // of A: 0 ... 3, B: 4, 5, C: 6 ... 9
  };
  for (const char* kernel : {"mma_f16", "mma_bf16", "mma_tf32", "mma_s8"}) {
    for (const Missing& m : {Missing{0, 13}, {1, 13}, {3, 30}, {4, 22}, {5, 9}, {6, 17}, {9, 17}}) {
      Blank<std::uint32_t> in(320);
      Buffer<std::uint32_t> out(1);
      for (std::size_t i = 0; i < 320; ++i) {
        in[i] = 0;
        if (i != m.word * 32 + m.lane) Device::instance().mark_written(&in[i], 4);
      }
      for (int lane = 0; lane < 32; ++lane) {
        for (int word = 0; word < 4; ++word) {
          const int row = lane / 4 + word / 2 * 8, column = lane % 4 * 2 + word % 2;
          const int g = int(m.lane) / 4;
          const bool reached = m.word < 4   ? row == g + int(m.word) % 2 * 8
                               : m.word < 6 ? column == g
                                            : lane == int(m.lane) && word == int(m.word) - 6;
          const std::string what = found(kernel, in.data(), out.data(), lane, word);
          EXPECT_EQ(!what.empty(), reached)
              << kernel << ": word " << m.word << " to " << row << "," << column << " " << what;
        }
      }
    }
  }
}

TEST_P(Tiles, MatricesThatAreMoved) {
  for (const int missing : {0, 6, 13, 31}) {
    Blank<std::uint32_t> in(32);
    Buffer<std::uint32_t> out(1);
    for (int i = 0; i < 32; ++i) {
      if (i != missing) Device::instance().mark_written(&in[std::size_t(i)], 4);
    }
    for (int how = 0; how <= 4; ++how) {
      for (int lane = 0; lane < 32; ++lane) {
        // Columns 2 t and 2 t + 1 of row g become rows.
        const bool turns = how % 2 == 0;
        const bool reached =
            turns ? lane / 8 == missing % 4 && lane % 4 == missing / 8 : lane == missing;
        const std::string what = found("moves_a_matrix", in.data(), out.data(), how, lane);
        EXPECT_EQ(!what.empty(), reached) << how << " " << missing << " " << lane << what;
      }
    }
  }
}
TEST_P(Tiles, VoltaByRowColumnAndElement) {
  for (const int word : {0, 1, 2, 3, 4, 9}) {
    for (const int missing : {2, 5, 19, 30}) {
      Blank<std::uint32_t> in(12 * 32);
      Buffer<float> out(1);
      for (int i = 0; i < 12 * 32; ++i) {
        if (i != word * 32 + missing) Device::instance().mark_written(&in[std::size_t(i)], 4);
      }
      const int line = missing % 4 + missing / 16 * 4;
      for (int at = 0; at < 256; ++at) {
        const int lane = at / 8, n = at % 8;
        const int row = lane / 16 * 4 + (n & 2) + (lane & 1),
                  column = (n & 4) + (lane & 2) + (n & 1);
        const bool reached = word < 2   ? lane % 16 / 4 == missing % 16 / 4 && row == line
                             : word < 4 ? lane % 16 / 4 == missing % 16 / 4 && column == line
                                        : lane == missing && n == word - 4;
        const std::string what = found("mma_volta", in.data(), out.data(), lane, n);
        EXPECT_EQ(!what.empty(), reached) << word << " " << missing << " " << at << what;
      }
    }
  }
}

TEST_P(Tiles, EachUseOfAnElement) {
  Buffer<int> in(32), out(32);
  for (int how = 0; how <= 4; ++how) {
    const std::string what = found("uses_an_element", in.data(), out.data(), how, 20);
    EXPECT_TRUE(is_at(what, line_of("reads_an_element"))) << how << what;
    EXPECT_NE(what.find("the value is used at " + line_of("use_" + std::to_string(how))), what.npos)
        << how << what;
    EXPECT_EQ(found("uses_an_element", in.data(), out.data(), how, 32), "") << how;
  }
  for (int how = 5; how <= 7; ++how)
    EXPECT_EQ(found("uses_an_element", in.data(), out.data(), how, 20), "") << how;
}

TEST_P(Tiles, BranchesThatOnlyCompute) {
  // Whatever the undefined values happen to be, both ways end in a constant or a defined sum.
  for (const int filler : {0, 100}) {
    Blank<int> in(32);
    Buffer<int> out(32);
    for (int i = 0; i < 32; ++i) in[std::size_t(i)] = i < 20 ? i : filler;
    Device::instance().mark_written(in.data(), 80);
    EXPECT_EQ(found("selects_by_branch", in.data(), out.data(), 20), "");
    EXPECT_EQ(out[3], 5);
    EXPECT_EQ(out[19], 7);
    const std::string what = found("selects_by_branch", in.data(), out.data(), 21);
    EXPECT_TRUE(is_at(what, line_of("reads_for_branch"))) << what;
    EXPECT_NE(what.find("used at " + line_of("stores_by_branch")), what.npos) << what;
  }
}

TEST_P(Tiles, CopiesNameWhoCarriedThem) {
  Blank<int> from(128), to(128), third(128);
  Device::instance().mark_written(from.data(), 400);
  EXPECT_EQ(found("carries_rows", from.data(), to.data()), "");
  const std::string what = Device::instance().describe_unwritten(to.data(), 512);
  EXPECT_NE(what.find("112 of 512 bytes hold values that nothing defines"), what.npos) << what;
  EXPECT_NE(what.find("byte 400 of a 512-byte"), what.npos) << what;
  EXPECT_NE(what.find("kernel carries_rows at " + line_of("carries_rows")), what.npos) << what;
  Device::instance().copy_written(third.data(), to.data(), 512);
  EXPECT_NE(Device::instance().describe_unwritten(third.data(), 512).find("carries_rows"),
            what.npos);
  EXPECT_NE(Device::instance().describe_unwritten(from.data(), 512).find("were never written"),
            what.npos);
}

TEST_P(Tiles, FindingsNameTheCallersLine) {
  Blank<int> in(32);
  Buffer<int> out(32);
  const std::string what = found("stores_by_header", in.data(), out.data());
  EXPECT_NE(what.find("used at " + line_of("stores_by_header") + " (in inlined_store.cuh:"),
            what.npos)
      << what;
  Device::instance().mark_written(in.data(), 128);
  EXPECT_NE(program.run("stores_beyond_by_header", {{1}, {32}}, in.data(), out.data()),
            Device::Status::ok);
  ASSERT_EQ(Device::instance().findings().size(), 1u);
  const CheckerFinding& fault = Device::instance().findings()[0];
  EXPECT_NE(fault.what.find(line_of("beyond_by_header")), what.npos) << fault.what;
  EXPECT_TRUE(fault.file.ends_with("tiles.cu")) << fault.file;
}

}  // namespace
}  // namespace attest::emulator
