// Libraries as nvcc links them in each way, and files that are no libraries.
#include "optimized/emulator/runtime/linkage.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <vector>

#include "reference/text.hpp"

namespace attest::emulator {
namespace {

std::filesystem::path library(const std::string& name) {
  return std::filesystem::path(ATTEST_PROGRAMS) / name;
}
std::vector<std::byte> bytes_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::vector<std::byte> bytes(text.size());
  std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}
std::string message_of(const std::filesystem::path& path) {
  try {
    inspect_linkage(path);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(Linkage, OfAnOrdinaryPlugin) {
  const Linkage linkage = inspect_linkage(library("plugin.so"));
  EXPECT_TRUE(linkage.cudart_major == 12 || linkage.cudart_major == 13);
  EXPECT_TRUE(linkage.defines_subject);
  EXPECT_TRUE(linkage.has_device_code);
  EXPECT_TRUE(linkage.has_ptx);
  EXPECT_FALSE(linkage.static_cudart);
  EXPECT_FALSE(linkage.relocatable);
  EXPECT_EQ(emulation_obstacle(linkage), "");
}

TEST(Linkage, NamesTheObstacle) {
  const Linkage with_static = inspect_linkage(library("plugin_static.so"));
  EXPECT_TRUE(with_static.static_cudart);
  EXPECT_EQ(with_static.cudart_major, 0U);
  EXPECT_NE(emulation_obstacle(with_static).find("-cudart shared"), std::string::npos);
  const Linkage relocatable = inspect_linkage(library("plugin_relocatable.so"));
  EXPECT_TRUE(relocatable.relocatable);
  EXPECT_NE(emulation_obstacle(relocatable).find("-rdc=true"), std::string::npos);
  const Linkage without = inspect_linkage(library("plugin_without_ptx.so"));
  EXPECT_FALSE(without.has_ptx);
  EXPECT_TRUE(without.has_device_code);
  EXPECT_NE(emulation_obstacle(without).find("compute_80"), std::string::npos);
  EXPECT_NE(emulation_obstacle({.cudart_major = 11}).find("libcudart.so.11"), std::string::npos);
}

TEST(Linkage, OfALibraryWithoutCuda) {
  const Linkage linkage = inspect_linkage(ATTEST_OTHER_LIBRARY);
  EXPECT_EQ(linkage.cudart_major, 0U);
  EXPECT_FALSE(linkage.has_device_code || linkage.static_cudart || linkage.defines_subject);
  EXPECT_EQ(emulation_obstacle(linkage), "");
}

TEST(Linkage, RefusesOtherFiles) {
  EXPECT_NE(message_of("/nonexistent.so").find("/nonexistent.so cannot be read"),
            std::string::npos);
  EXPECT_NE(message_of(ATTEST_SOURCE).find("is no shared library"), std::string::npos);
  EXPECT_NE(message_of("/").find("cannot be read"), std::string::npos);
  const auto refused = [](std::size_t offset, int value) {
    auto bytes = bytes_of(library("plugin.so"));
    bytes[offset] = std::byte(value);
    EXPECT_THROW(inspect_linkage(bytes, "x"), Error) << offset;
  };
  refused(4, 1);     // 32 bits
  refused(16, 1);    // an object file
  refused(16, 2);    // a program at a fixed address
  refused(18, 183);  // for AArch64
}

TEST(Linkage, ReadsNothingBeyondTheFile) {
  // Every length of the file, and a lie in every byte of its header and section table.
  const auto whole = bytes_of(library("plugin.so"));
  const std::size_t step = whole.size() / 500 + 1;
  for (std::size_t size = 0; size < whole.size(); size += step) {
    const std::vector<std::byte> cut(whole.begin(), whole.begin() + size);
    EXPECT_THROW(inspect_linkage(cut, "cut"), Error) << size;
  }
  constexpr std::size_t kHeaderBytes = 64;
  const auto try_byte = [&](std::size_t at) {
    auto lying = whole;
    for (const int value : {0x00, 0x7f, 0xff}) {
      lying[at] = std::byte(value);
      try {
        inspect_linkage(lying, "lying");
      } catch (const Error&) {
      }
    }
  };
  for (std::size_t at = 0; at < kHeaderBytes; ++at) try_byte(at);
  for (std::size_t at = whole.size() - 30 * 64; at < whole.size(); ++at) try_byte(at);
}

}  // namespace
}  // namespace attest::emulator
