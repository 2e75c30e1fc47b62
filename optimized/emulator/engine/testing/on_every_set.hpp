// What the tests of the checkers share: programs.cu or tiles.cu on every instruction set, its
// marked lines, and memory that nobody has filled. Test code only.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "optimized/emulator/engine/testing/test_program.hpp"

namespace attest::emulator {

/// "programs.cu:123", or whatever the file is, of the line that carries the comment `LINE name`.
inline std::string line_of(const std::string& name) {
  const std::string source = text_of(ATTEST_CHECKS_SOURCE);
  const std::size_t at = source.find("// LINE " + name + "\n");
  EXPECT_NE(at, std::string::npos) << name;
  const std::string path = ATTEST_CHECKS_SOURCE;
  return path.substr(path.rfind('/') + 1) + ":" +
         std::to_string(std::count(source.begin(), source.begin() + std::ptrdiff_t(at), '\n') + 1);
}

/// Device memory that nobody has filled.
template <class T>
struct Blank : Buffer<T> {
  explicit Blank(std::size_t count) : Buffer<T>(count) {
    Device::instance().mark_written(this->data(), count * sizeof(T), false);
  }
};

class OnEverySet : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { choose(GetParam()); }
  void TearDown() override {
    Device::instance().configure({});
    Device::instance().reset_findings();
  }
  TestProgram program{text_of(ATTEST_CHECKS_PTX)};

  /// The kernel runs to its end; what is found is of this kind, and one text has all the parts.
  template <class... Arguments>
  void expect(const std::string& kind, const std::vector<std::string>& parts,
              const std::string& kernel, const Shape& shape, Arguments... arguments) {
    EXPECT_EQ(program.trouble(kernel, shape, arguments...), "");
    const auto& findings = Device::instance().findings();
    bool named = false;
    std::string all;
    for (const CheckerFinding& finding : findings) {
      EXPECT_EQ(finding.kind, kind) << finding.what;
      EXPECT_NE(finding.what.find("kernel " + kernel), std::string::npos) << finding.what;
      named |= std::all_of(parts.begin(), parts.end(), [&](const std::string& part) {
        return finding.what.find(part) != std::string::npos;
      });
      all += finding.what + "\n";
    }
    EXPECT_TRUE(named) << testing::PrintToString(parts) << " in:\n" << all;
    Device::instance().reset_findings();
  }
};

}  // namespace attest::emulator
