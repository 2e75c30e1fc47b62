// Programs that end badly: each finding has the right kind and names kernel, block, thread, source
// line and what was wrong; after it the device refuses to launch until it is reset.
#include <cmath>

#include <gtest/gtest.h>

#include "optimized/emulator/engine/testing/test_program.hpp"

namespace attest::emulator {
namespace {

/// "programs.cu:123" of the line that carries the comment `LINE name`.
std::string line_of(const std::string& name) {
  const std::string source = text_of(ATTEST_PROGRAMS_SOURCE);
  const std::size_t at = source.find("// LINE " + name + "\n");
  return "programs.cu:" +
         std::to_string(std::count(source.begin(), source.begin() + std::ptrdiff_t(at), '\n') + 1);
}

class Faults : public testing::Test {
 protected:
  // These programs also read what nobody wrote; that is checks_test.cpp's business.
  void SetUp() override {
    choose("avx512");
    DeviceOptions options;
    options.checks = {.memcheck = true, .initcheck = false, .racecheck = false};
    Device::instance().configure(options);
  }
  void TearDown() override {
    Device::instance().configure({});
    Device::instance().reset_findings();
  }
  TestProgram program{text_of(ATTEST_PROGRAMS_PTX)};

  /// The kernel must end with one finding of this kind, whose text has all the parts.
  template <class... Arguments>
  void expect(const std::string& kind, const std::vector<std::string>& parts,
              const std::string& kernel, const Shape& shape, Arguments... arguments) {
    EXPECT_EQ(program.run(kernel, shape, arguments...), Device::Status::faulted);
    const auto& findings = Device::instance().findings();
    ASSERT_EQ(findings.size(), 1u) << kernel;
    EXPECT_EQ(findings[0].kind, kind) << findings[0].what;
    EXPECT_NE(findings[0].what.find("kernel " + kernel), std::string::npos) << findings[0].what;
    for (const std::string& part : parts)
      EXPECT_NE(findings[0].what.find(part), std::string::npos)
          << "no '" << part << "' in: " << findings[0].what;
    EXPECT_EQ(program.run("traps", {}), Device::Status::faulted) << "a faulted device must stay so";
    EXPECT_EQ(Device::instance().findings().size(), 1u);
    Device::instance().reset_findings();
  }
};

TEST_F(Faults, ReadPastTheEnd) {
  Buffer<float> a(1024), out(32);
  expect("memcheck",
         {"block (0,0,0)", "thread (7,0,0)", line_of("reads_past_end"),
          "reads 4 bytes of global memory", "4 bytes past the end of a 4096-byte allocation"},
         "reads_past_end", {{1}, {32}}, a.data(), out.data(), 1018);
}
TEST_F(Faults, OneElementPastTheEnd) {
  Buffer<float> a(39), out(32);
  expect("memcheck", {"thread (7,0,0)", "0 bytes past the end of a 156-byte allocation"},
         "reads_past_end", {{1}, {32}}, a.data(), out.data(), 32);
}
TEST_F(Faults, WriteBeforeTheBeginning) {
  Buffer<float> a(64);
  expect("memcheck",
         {line_of("writes_before"), "writes 4 bytes", "4 bytes before a 256-byte allocation"},
         "writes_before", {{1}, {1}}, a.data());
}
TEST_F(Faults, Misalignment) {
  Buffer<char> a(256);
  expect("memcheck", {line_of("misaligned"), "not aligned to 4 bytes"}, "misaligned", {{1}, {8}},
         a.data());
  expect("memcheck", {line_of("misaligned"), "not aligned to 4 bytes"}, "misaligned", {{1}, {32}},
         a.data());
}
TEST_F(Faults, FreedMemory) {
  Buffer<int> out(1);
  int* freed = static_cast<int*>(Device::instance().allocate(400));
  EXPECT_TRUE(Device::instance().release(freed));
  EXPECT_FALSE(Device::instance().release(freed));
  expect("memcheck", {line_of("reads_null"), "8 bytes into a 400-byte allocation that was freed"},
         "reads_null", {{1}, {1}}, freed + 2, out.data());
}
TEST_F(Faults, Null) {
  Buffer<int> out(1);
  expect("memcheck", {"null"}, "reads_null", {{1}, {1}}, static_cast<int*>(nullptr), out.data());
}
TEST_F(Faults, HostMemory) {
  Buffer<int> out(1);
  static int on_host = 5;
  expect("memcheck", {"host memory"}, "reads_null", {{1}, {1}}, &on_host, out.data());
}
TEST_F(Faults, WildPointer) {
  Buffer<int> out(1);
  expect("memcheck", {"no allocation is near"}, "reads_null", {{1}, {1}},
         reinterpret_cast<int*>(0x00dead0000000000), out.data());
  expect("memcheck", {"reads_null"}, "reads_null", {{1}, {1}},
         reinterpret_cast<int*>(0xfffffffffffffffc), out.data());
}
TEST_F(Faults, RestrictedAccess) {
  Buffer<float> a(1024), out(32);
  ASSERT_TRUE(Device::instance().restrict_access(a.data() + 256, 1024));
  EXPECT_FALSE(Device::instance().restrict_access(a.data() + 1000, 1024));
  EXPECT_EQ(program.trouble("reads_past_end", {{1}, {32}}, a.data() + 256, out.data(), 200), "");
  expect("memcheck",
         {"thread (7,0,0)",
          "12 bytes past the end of the 1024 bytes of a 4096-byte allocation that this launch may "
          "touch"},
         "reads_past_end", {{1}, {32}}, a.data() + 256, out.data(), 252);
  expect("memcheck", {"thread (0,0,0)", "4 bytes before the 1024 bytes"}, "reads_past_end",
         {{1}, {32}}, a.data() + 255, out.data(), 0);
}
TEST_F(Faults, SharedMemoryOfTheLaunchIsTheLimit) {
  Buffer<int> out(32);
  EXPECT_EQ(program.trouble("shared_overflow", {{1}, {32}, 256}, out.data(), 32), "");
  expect("memcheck",
         {"thread (31,0,0)", line_of("shared_overflow"), "writes 4 bytes of shared memory",
          "the block has 256 bytes (0 static and 256 dynamic)"},
         "shared_overflow", {{1}, {32}, 256}, out.data(), 33);
  expect("memcheck", {"thread (0,0,0)", "4 bytes before the shared memory"}, "shared_overflow",
         {{1}, {32}, 256}, out.data(), -1);
}
TEST_F(Faults, LocalMemory) {
  Buffer<int> out(32);
  EXPECT_EQ(program.trouble("local_overflow", {{1}, {32}}, out.data(), 15), "");
  expect("memcheck", {line_of("local_overflow"), "of local memory"}, "local_overflow", {{1}, {32}},
         out.data(), 1 << 20);
}
TEST_F(Faults, Assertion) {
  EXPECT_EQ(program.trouble("asserts", {{1}, {32}}, 32), "");
  expect("assert", {"thread (20,0,0)", line_of("asserts"), "`threadIdx.x < n`"}, "asserts",
         {{3}, {32}}, 20);
}
TEST_F(Faults, Trap) {
  expect("trap", {"block (0,0,0)", "thread (3,0,0)", line_of("traps")}, "traps", {{2}, {32}});
}
TEST_F(Faults, BarrierUnderDivergence) {
  Buffer<int> out(2);
  expect("barrier", {line_of("divergent_barrier"), "different places"}, "divergent_barrier",
         {{1}, {32}}, out.data());
}
TEST_F(Faults, DeadlockSaysWhoWaitsWhere) {
  Buffer<int> out(64);
  expect("deadlock",
         {line_of("waits_for_nobody"), "warp 0", "barrier 3 (32 of 64 threads have come)"},
         "waits_for_nobody", {{1}, {64}}, out.data());
}
// The line is that of the intrinsic, since it was inlined from there.
TEST_F(Faults, LaneMissingFromItsMask) {
  Buffer<int> out(32);
  expect("barrier", {"sm_30_intrinsics.hpp", "thread (1,0,0)", "mask"}, "lane_missing", {{1}, {32}},
         out.data());
}
TEST_F(Faults, EndlessLoopMeetsTheLimit) {
  for (unsigned threads : {1u, 2u}) {
    Device::instance().configure({.threads = threads, .instruction_limit = 100000});
    Buffer<int> flag(1);
    const auto before = Device::instance().counts().warp_instructions;
    expect("limit", {"limit of instructions"}, "loops", {{2}, {32}}, flag.data());
    EXPECT_LE(Device::instance().counts().warp_instructions - before, 100000u * threads);
  }
}
TEST_F(Faults, RunawayRecursion) {
  Buffer<int> p(1), out(1);
  expect("limit", {"call stack"}, "recurses", {{1}, {1}}, p.data(), out.data());
}
TEST_F(Faults, UnsupportedInstructionsAreNamedWhenReached) {
  Buffer<float> out(1);
  expect("unsupported", {line_of("unsupported"), "multimem.red", "several GPUs", "run it on a GPU"},
         "unsupported", {{1}, {1}}, out.data());
  EXPECT_EQ(program.trouble("unsupported_elsewhere", {{1}, {1}}, out.data(), 3), "");
}
TEST_F(Faults, TheFirstBlockIsReportedWhateverTheThreads) {
  for (unsigned threads : {1u, 2u, 3u}) {
    Device::instance().configure({.threads = threads});
    expect("assert", {"block (0,0,0)", "thread (20,0,0)"}, "asserts", {{64}, {32}}, 20);
  }
}
TEST_F(Faults, WithoutMemcheckOnlyNullIsCaught) {
  Device::instance().configure({.threads = 1, .checks = {false, false, false}});
  Buffer<float> a(1024), out(32);
  EXPECT_EQ(program.trouble("reads_past_end", {{1}, {32}}, a.data(), out.data(), 1018),
            "");  // stays in the red zone
  Buffer<int> other(1);
  expect("memcheck", {"null"}, "reads_null", {{1}, {1}}, static_cast<int*>(nullptr), other.data());
}

}  // namespace
}  // namespace attest::emulator
