// The safetensors container: a length, a JSON header, the bytes of named tensors. Bytes and shapes
// only: it does not know what attention is, nor which names mean something.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "reference/problem.hpp"

namespace attest {

// Enumerators are spelled as in the file.
enum class Dtype : std::uint8_t { F64, F32, F16, BF16, F8_E4M3, F8_E5M2, I32, I64, U8, BOOL, I8 };
std::string_view name_of(Dtype dtype);
std::size_t bytes_of(Dtype dtype);
/// The format with the same bit patterns, for those that have one.
std::optional<Format> format_of(Dtype dtype);
Dtype dtype_of(Format format);

/// A tensor inside somebody else's bytes, row-major.
struct StoredTensor {
  std::string name;
  Dtype dtype = Dtype::F32;
  std::vector<Index> shape;
  std::span<const std::byte> bytes;
  Index count() const { return static_cast<Index>(bytes.size() / bytes_of(dtype)); }
};

struct Safetensors {
  std::vector<StoredTensor> tensors;  // in the order of their bytes
  std::map<std::string, std::string> metadata;
  const StoredTensor* find(std::string_view name) const;
};

/// Refuses, by Error naming `file_name` and the field: a truncated or oversized header, JSON that
/// is malformed, nested or says a name twice, unknown dtypes, shapes whose size is not that of the
/// byte range, ranges that overlap, leave holes or lie outside. Nothing is allocated because of a
/// number in the file; the tensors view `file`.
Safetensors parse_safetensors(std::span<const std::byte> file, std::string_view file_name);

std::vector<std::byte> print_safetensors(const Safetensors& content);

/// A whole file, mapped for reading. Throws Error when it is missing or not a regular file.
class MappedFile {
 public:
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;
  std::span<const std::byte> bytes() const { return {data_, size_}; }

 private:
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

/// Of a regular file a reader sees the old one or the new one, never half of it. Links are followed
/// and stay; what is no regular file is written to; "-" is standard output, and from then on what
/// is printed goes to standard error. Throws Error.
void write_whole(const std::filesystem::path& path, std::span<const std::byte> bytes);
void write_whole(const std::filesystem::path& path, std::string_view text);
/// Throws Error now rather than at the end of long work when write_whole(path) could not. To be
/// asked before anything is printed: the path may be "-".
void require_writable_file(const std::filesystem::path& path);

}  // namespace attest
