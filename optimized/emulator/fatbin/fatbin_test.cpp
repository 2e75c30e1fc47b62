// Containers as the nvcc at hand writes them, in every compression; and containers that are cut
// off, lie or hold nothing of use.
#include "optimized/emulator/fatbin/fatbin.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>

namespace attest::emulator::fatbin {
namespace {

std::vector<std::byte> bytes_of(const std::string& name) {
  std::ifstream file(std::string(ATTEST_SAMPLES) + "/" + name, std::ios::binary);
  EXPECT_TRUE(file) << name;
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  std::vector<std::byte> bytes(text.size());
  std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}
template <typename T>
void put(std::vector<std::byte>& bytes, std::size_t offset, T value) {
  std::memcpy(bytes.data() + offset, &value, sizeof value);
}
FatbinError::Kind kind_of(const std::function<void()>& action, std::string* what = nullptr) {
  try {
    action();
  } catch (const FatbinError& error) {
    if (what != nullptr) *what = error.what();
    return error.kind;
  }
  ADD_FAILURE() << "no error";
  return FatbinError::Kind::damaged;
}
std::string text_in(const std::vector<std::byte>& bytes) {
  return ptx_text(choose_ptx(read_images(bytes), 80));
}

// Where the fields of the first entry lie.
constexpr std::size_t kEntry = 16, kHeaderBytes = kEntry + 4, kPayloadBytes = kEntry + 8,
                      kCompressedBytes = kEntry + 16, kNameOffset = kEntry + 32,
                      kFlags = kEntry + 40, kRawBytes = kEntry + 56;

class Compression : public testing::TestWithParam<const char*> {};

TEST_P(Compression, IsUndone) {
  const auto bytes = bytes_of(std::string(GetParam()) + ".fatbin");
  EXPECT_EQ(container_bytes(bytes), bytes.size());
  const auto images = read_images(bytes);
  ASSERT_EQ(images.size(), 1U);
  EXPECT_EQ(images[0].kind, Image::Kind::ptx);
  EXPECT_EQ(images[0].architecture, 80U);
  EXPECT_TRUE(images[0].source_name.ends_with("sample.cu"));
  const std::string text = ptx_text(images[0]);
  EXPECT_NE(text.find(".entry _Z5scalePffi("), std::string::npos);
  EXPECT_EQ(text.find('\0'), std::string::npos);
  EXPECT_EQ(text, text_in(bytes_of("none.fatbin")));
}
INSTANTIATE_TEST_SUITE_P(Modes, Compression,
                         testing::Values("default", "size", "speed", "balance", "none"));

TEST(Fatbin, ModesAreWhatTheyClaim) {
  // Otherwise the tests above would pass without any decompression.
  EXPECT_EQ(read_images(bytes_of("size.fatbin"))[0].compression, Image::Compression::zstd);
  EXPECT_EQ(read_images(bytes_of("speed.fatbin"))[0].compression, Image::Compression::lz4);
  EXPECT_EQ(read_images(bytes_of("none.fatbin"))[0].compression, Image::Compression::none);
}

TEST(Fatbin, ObjectsHoldTheSameContainer) {
  EXPECT_EQ(text_in(bytes_of("object.fatbin")), text_in(bytes_of("none.fatbin")));
}

TEST(Fatbin, ChoosesTheImageOfTheDevice) {
  const auto bytes = bytes_of("several.fatbin");
  const auto images = read_images(bytes);
  EXPECT_EQ(choose_ptx(images, 80).architecture, 80U);
  EXPECT_EQ(choose_ptx(images, 89).architecture, 80U);
  EXPECT_EQ(choose_ptx(images, 90).architecture, 90U);
  EXPECT_TRUE(choose_ptx(images, 90).architecture_specific);
  EXPECT_TRUE(std::any_of(images.begin(), images.end(),
                          [](const Image& each) { return each.kind == Image::Kind::elf; }));
  const std::vector<Image> made{
      {.kind = Image::Kind::ptx, .architecture_specific = true, .architecture = 90},
      {.kind = Image::Kind::ptx, .architecture = 90},
      {.kind = Image::Kind::ptx, .architecture = 100}};
  EXPECT_EQ(&choose_ptx(made, 90), &made[1]);   // portable first
  EXPECT_EQ(&choose_ptx(made, 80), &made[1]);   // nothing older: the oldest
  EXPECT_EQ(&choose_ptx(made, 120), &made[2]);  // the newest it has
}

TEST(Fatbin, SaysWhatIsMissing) {
  std::string what;
  EXPECT_EQ(kind_of([] { text_in(bytes_of("machine_code.fatbin")); }, &what),
            FatbinError::Kind::no_ptx);
  EXPECT_NE(what.find("machine code only"), std::string::npos);
  auto unknown = bytes_of("default.fatbin");
  put<std::uint64_t>(unknown, kFlags, 0x11);  // compressed, but not said how
  EXPECT_EQ(kind_of([&] { text_in(unknown); }, &what), FatbinError::Kind::unsupported);
  EXPECT_NE(what.find("-compress-mode=none"), std::string::npos);
  auto version = bytes_of("default.fatbin");
  put<std::uint16_t>(version, 4, 2);
  EXPECT_EQ(kind_of([&] { read_images(version); }), FatbinError::Kind::unsupported);
}

TEST(Fatbin, RecordsArePointedThrough) {
  struct Record {
    std::uint32_t magic, version;
    const void* data;
    void* more;
  };
  const auto bytes = bytes_of("default.fatbin");
  Record record{0x466243b1, 1, bytes.data(), nullptr};
  EXPECT_EQ(container_of(&record).size(), bytes.size());
  record.version = 2;
  std::string what;
  EXPECT_EQ(kind_of([&] { container_of(&record); }, &what), FatbinError::Kind::relocatable);
  EXPECT_NE(what.find("-rdc=true"), std::string::npos);
  record.magic = 1;
  EXPECT_EQ(kind_of([&] { container_of(&record); }), FatbinError::Kind::damaged);
}

TEST(Fatbin, CutOffIsDamage) {
  for (const char* name : {"default.fatbin", "speed.fatbin", "none.fatbin"}) {
    const auto bytes = bytes_of(name);
    for (std::size_t size = 0; size < bytes.size(); ++size) {
      const std::vector<std::byte> cut(bytes.begin(), bytes.begin() + size);
      EXPECT_EQ(kind_of([&] { text_in(cut); }), FatbinError::Kind::damaged) << name << size;
    }
  }
}

TEST(Fatbin, LiesAreDamage) {
  const auto damaged = [](const char* name, std::size_t offset, auto value) {
    auto bytes = bytes_of(name);
    put(bytes, offset, value);
    EXPECT_EQ(kind_of([&] { text_in(bytes); }), FatbinError::Kind::damaged)
        << name << " at " << offset;
  };
  damaged("default.fatbin", 0, std::uint32_t{0});
  damaged("default.fatbin", 8, ~std::uint64_t{0});
  damaged("default.fatbin", kHeaderBytes, std::uint32_t{8});
  damaged("default.fatbin", kHeaderBytes, ~std::uint32_t{0});
  damaged("default.fatbin", kPayloadBytes, ~std::uint64_t{0});
  damaged("default.fatbin", kPayloadBytes, ~std::uint64_t{0} - 100);
  damaged("default.fatbin", kCompressedBytes, ~std::uint32_t{0});
  damaged("default.fatbin", kNameOffset, ~std::uint32_t{0});
  // Sizes of the text that would fill the machine, or that the data do not bear out.
  for (const char* name : {"default.fatbin", "speed.fatbin"}) {
    damaged(name, kRawBytes, std::uint64_t{0});
    damaged(name, kRawBytes, std::uint64_t{1} << 40);
    damaged(name, kRawBytes, std::uint64_t{1} << 26);
    damaged(name, kRawBytes, std::uint64_t{600});
    damaged(name, kRawBytes, std::uint64_t{20});
  }
}

}  // namespace
}  // namespace attest::emulator::fatbin
