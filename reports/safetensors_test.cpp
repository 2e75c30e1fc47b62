// The safetensors container: files as other programs write them, and files that lie.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "reference/text.hpp"
#include "reports/safetensors.hpp"

namespace attest {
namespace {

std::vector<std::byte> file_of(const std::string& header, std::size_t data_bytes,
                               std::uint64_t claimed_bytes) {
  std::vector<std::byte> file(8 + header.size() + data_bytes);
  std::memcpy(file.data(), &claimed_bytes, 8);
  std::memcpy(file.data() + 8, header.data(), header.size());
  for (std::size_t i = 0; i < data_bytes; ++i) file[8 + header.size() + i] = std::byte(i);
  return file;
}
std::vector<std::byte> file_of(const std::string& header, std::size_t data_bytes) {
  return file_of(header, data_bytes, header.size());
}

std::string refusal(const std::vector<std::byte>& file) {
  try {
    parse_safetensors(file, "f.safetensors");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}
std::string refusal(const std::string& header, std::size_t data_bytes) {
  return refusal(file_of(header, data_bytes));
}

#define EXPECT_REFUSED(call, words) \
  EXPECT_NE((call).find(words), std::string::npos) << "said: " << (call)

TEST(Safetensors, ReadsWhatOthersWrite) {
  const auto file = file_of(
      R"({"__metadata__":{"format":"pt"},"b":{"dtype":"F16","shape":[2],"data_offsets":[12,16]},)"
      R"("a":{"dtype":"F32","shape":[1,3],"data_offsets":[0,12]},)"
      R"("none":{"dtype":"F64","shape":[0,7],"data_offsets":[12,12]},)"
      R"("scalar":{"dtype":"BOOL","shape":[],"data_offsets":[16,17]}}   )",
      17);
  const Safetensors content = parse_safetensors(file, "f");
  ASSERT_EQ(content.tensors.size(), 4U);
  EXPECT_EQ(content.metadata.at("format"), "pt");
  const StoredTensor* b = content.find("b");
  ASSERT_NE(b, nullptr);
  EXPECT_EQ(b->dtype, Dtype::F16);
  EXPECT_EQ(b->count(), 2);
  EXPECT_EQ(b->bytes[0], std::byte{12});
  EXPECT_EQ(content.find("none")->count(), 0);
  EXPECT_EQ(content.find("scalar")->count(), 1);
  EXPECT_EQ(content.find("c"), nullptr);
}

TEST(Safetensors, EveryDtypeIsReadBack) {
  for (const Dtype dtype :
       {Dtype::F64, Dtype::F32, Dtype::F16, Dtype::BF16, Dtype::F8_E4M3, Dtype::F8_E5M2, Dtype::I32,
        Dtype::I64, Dtype::U8, Dtype::BOOL, Dtype::I8}) {
    std::vector<std::byte> bytes(6 * bytes_of(dtype));
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = std::byte(i * 7);
    Safetensors content;
    content.metadata["problem"] = "q=1x1x1x1 \"quoted\"";
    content.tensors.push_back({"x", dtype, {2, 3}, bytes});
    content.tensors.push_back({"empty", dtype, {0}, {}});
    const auto file = print_safetensors(content);
    const Safetensors back = parse_safetensors(file, "f");
    EXPECT_EQ(back.metadata, content.metadata);
    ASSERT_NE(back.find("x"), nullptr);
    EXPECT_EQ(back.find("x")->dtype, dtype);
    EXPECT_EQ(back.find("x")->shape, (std::vector<Index>{2, 3}));
    EXPECT_TRUE(std::equal(bytes.begin(), bytes.end(), back.find("x")->bytes.begin(),
                           back.find("x")->bytes.end()));
  }
}

TEST(Safetensors, DataStartOnAMultipleOfEight) {
  for (std::size_t length = 1; length < 20; ++length) {
    Safetensors content;
    content.tensors.push_back({std::string(length, 'n'), Dtype::U8, {0}, {}});
    EXPECT_EQ(print_safetensors(content).size() % 8, 0U);
  }
}

TEST(Safetensors, RefusesATruncatedFileAtEveryLength) {
  const auto file = file_of(R"({"a":{"dtype":"F32","shape":[3],"data_offsets":[0,12]}})", 12);
  EXPECT_EQ(refusal(file), "");
  for (std::size_t size = 0; size < file.size(); ++size) {
    EXPECT_NE(refusal({file.begin(), file.begin() + static_cast<std::ptrdiff_t>(size)}), "")
        << size;
  }
}

TEST(Safetensors, RefusesAHeaderThatLiesAboutItsLength) {
  const std::string header = R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}})";
  EXPECT_REFUSED(refusal(file_of(header, 2, 1U << 20)), "truncated");
  EXPECT_REFUSED(refusal(file_of(header, 2, ~std::uint64_t{0})), "more than the");
  EXPECT_REFUSED(refusal(file_of(header, 2, header.size() - 1)), "not valid JSON");
  EXPECT_REFUSED(refusal(file_of(header, 2, header.size() + 2)), "not valid JSON");
  EXPECT_REFUSED(refusal(file_of(header, 2, 0)), "not valid JSON");
}

TEST(Safetensors, RefusesRangesThatLie) {
  const auto one = [](const std::string& offsets) {
    return R"({"a":{"dtype":"U8","shape":[4],"data_offsets":)" + offsets + "}}";
  };
  EXPECT_EQ(refusal(one("[0,4]"), 4), "");
  EXPECT_REFUSED(refusal(one("[0,4]"), 3), "f.safetensors: a: data_offsets [0, 4] is no range");
  EXPECT_REFUSED(refusal(one("[4,0]"), 4), "is no range");
  EXPECT_REFUSED(refusal(one("[0,3]"), 3),
                 "spans 3 bytes, but shape [4] of U8 needs more than the file holds");
  EXPECT_REFUSED(refusal(one("[-4,0]"), 4), "whole numbers");
  EXPECT_REFUSED(refusal(one("[0.0,4.0]"), 4), "whole numbers");
  EXPECT_REFUSED(refusal(one("[0]"), 4), "whole numbers");
  EXPECT_REFUSED(refusal(one("[0,18446744073709551616]"), 4), "whole numbers");
  EXPECT_REFUSED(refusal(one("[0,4]"), 5), "1 bytes behind the last tensor");
  EXPECT_REFUSED(refusal(one("[1,5]"), 5), "leave a hole behind");
  EXPECT_REFUSED(refusal(R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},)"
                         R"("b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}})",
                         3),
                 "b: data_offsets overlap");
}

TEST(Safetensors, RefusesShapesThatLie) {
  const auto shaped = [](const std::string& shape) {
    return R"({"a":{"dtype":"F32","data_offsets":[0,4],"shape":)" + shape + "}}";
  };
  EXPECT_EQ(refusal(shaped("[1,1,1,1,1]"), 4), "");
  EXPECT_REFUSED(refusal(shaped("[2147483647,2147483647,2147483647]"), 4), "more than the file");
  EXPECT_REFUSED(refusal(shaped("[4611686018427387905]"), 4), "whole numbers from 0");
  EXPECT_REFUSED(refusal(shaped("[-1]"), 4), "whole numbers from 0");
  EXPECT_REFUSED(refusal(shaped("[0]"), 4), "needs 0");
  EXPECT_REFUSED(refusal(shaped("{}"), 4), "should be a list");
  EXPECT_REFUSED(refusal(shaped("[\"1\"]"), 4), "whole numbers from 0");
}

TEST(Safetensors, RefusesMalformedHeaders) {
  EXPECT_REFUSED(refusal("[]", 0), "no object");
  EXPECT_REFUSED(refusal("{\"a\":1}", 0), "a: should be a JSON object");
  EXPECT_REFUSED(refusal(R"({"a":{"shape":[0],"data_offsets":[0,0]}})", 0), "dtype is missing");
  EXPECT_REFUSED(refusal(R"({"a":{"dtype":"C64","shape":[0],"data_offsets":[0,0]}})", 0),
                 "\"C64\" is not known; known are F64, F32");
  EXPECT_REFUSED(refusal(R"({"a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},)"
                         R"("a":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}})",
                         0),
                 "\"a\" stands twice");
  EXPECT_REFUSED(refusal(R"({"__metadata__":{"format":1}})", 0), "format should be a string");
  EXPECT_REFUSED(refusal("{\"a\":" + std::string(1000000, '['), 0), "nested deeper");
  EXPECT_REFUSED(refusal("{\"\xff\":1}", 0), "not valid JSON");
}

TEST(MappedFile, RefusesWhatIsNoFile) {
  EXPECT_THROW(MappedFile("/nonexistent.safetensors"), Error);
  EXPECT_THROW(MappedFile("/"), Error);
  EXPECT_THROW(MappedFile("/dev/zero"), Error);
  const auto path = std::filesystem::path(testing::TempDir()) / "attest_empty_file";
  std::ofstream{path};
  EXPECT_TRUE(MappedFile(path).bytes().empty());
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace attest
