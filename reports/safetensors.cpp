// Reads and writes the safetensors container: see the header.
#include "reports/safetensors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <utility>

#include "reports/strict_json.hpp"

namespace attest {
namespace {

using Json = nlohmann::json;

static_assert(std::endian::native == std::endian::little, "the container is little-endian");

constexpr std::size_t kLengthBytes = 8;  // the header's length, a little-endian u64
// Far above any real header, which takes about 100 bytes per tensor.
constexpr std::uint64_t kHeaderBytesMax = 16U << 20;

struct DtypeRow {
  Dtype dtype;
  std::string_view name;
  std::size_t bytes;
  std::optional<Format> format;
};
constexpr DtypeRow kDtypes[] = {
    {Dtype::F64, "F64", 8, std::nullopt},
    {Dtype::F32, "F32", 4, Format::f32},
    {Dtype::F16, "F16", 2, Format::f16},
    {Dtype::BF16, "BF16", 2, Format::bf16},
    {Dtype::F8_E4M3, "F8_E4M3", 1, Format::e4m3},
    {Dtype::F8_E5M2, "F8_E5M2", 1, Format::e5m2},
    {Dtype::I32, "I32", 4, std::nullopt},
    {Dtype::I64, "I64", 8, std::nullopt},
    {Dtype::U8, "U8", 1, std::nullopt},
    {Dtype::BOOL, "BOOL", 1, std::nullopt},
    {Dtype::I8, "I8", 1, Format::i8},
};
const DtypeRow& row_of(Dtype dtype) {
  return kDtypes[static_cast<std::size_t>(dtype)];
}

Dtype read_dtype(const Fields& fields) {
  const std::string name = fields.text("dtype");
  std::string known;
  for (const DtypeRow& row : kDtypes) {
    if (row.name == name) return row.dtype;
    known += fmt::format("{}{}", known.empty() ? "" : ", ", row.name);
  }
  fields.refuse("dtype", fmt::format("\"{}\" is not known; known are {}", name, known));
}

std::vector<Index> read_shape(const Fields& fields) {
  std::vector<Index> shape;
  for (const Json& extent : fields.list("shape")) {
    if (!extent.is_number_unsigned() ||
        extent.get<std::uint64_t>() > std::uint64_t{std::numeric_limits<std::int32_t>::max()}) {
      fields.refuse("shape", "should list whole numbers from 0 to 2147483647");
    }
    shape.push_back(extent.get<Index>());
  }
  return shape;
}

/// Bytes that the shape needs, or nothing when that is more than `limit`.
std::optional<std::uint64_t> bytes_needed(const std::vector<Index>& shape, Dtype dtype,
                                          std::uint64_t limit) {
  std::uint64_t bytes = bytes_of(dtype);
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  for (const Index extent : shape) {
    // bytes <= limit <= a file's size and extent < 2^31: the product cannot wrap around.
    bytes *= static_cast<std::uint64_t>(extent);
    if (bytes > limit) return std::nullopt;
  }
  return bytes;
}

StoredTensor read_tensor(const std::string& name, const Fields& fields,
                         std::span<const std::byte> data) {
  StoredTensor tensor;
  tensor.name = name;
  tensor.dtype = read_dtype(fields);
  tensor.shape = read_shape(fields);
  const Json& offsets = fields.list("data_offsets");
  if (offsets.size() != 2 || !offsets[0].is_number_unsigned() || !offsets[1].is_number_unsigned()) {
    fields.refuse("data_offsets", "should be two whole numbers: first byte and one past the last");
  }
  const auto begin = offsets[0].get<std::uint64_t>();
  const auto end = offsets[1].get<std::uint64_t>();
  if (begin > end || end > data.size()) {
    fields.refuse("data_offsets", fmt::format("[{}, {}] is no range within the {} bytes of data",
                                              begin, end, data.size()));
  }
  const auto needed = bytes_needed(tensor.shape, tensor.dtype, data.size());
  if (needed != end - begin) {
    fields.refuse("data_offsets",
                  fmt::format("spans {} bytes, but shape [{}] of {} needs {}", end - begin,
                              fmt::join(tensor.shape, ", "), name_of(tensor.dtype),
                              needed ? fmt::to_string(*needed) : "more than the file holds"));
  }
  tensor.bytes = data.subspan(begin, end - begin);
  return tensor;
}

/// Every byte belongs to exactly one tensor: the format demands it, and it rules out hidden data.
void require_partition(std::vector<StoredTensor>& tensors, std::span<const std::byte> data,
                       std::string_view file_name) {
  std::stable_sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) {
    return std::pair(a.bytes.data(), a.bytes.size()) < std::pair(b.bytes.data(), b.bytes.size());
  });
  const std::byte* next = data.data();
  for (const StoredTensor& tensor : tensors) {
    if (tensor.bytes.data() != next) {
      throw Error(fmt::format("{}: {}: data_offsets {} the tensor before it", file_name,
                              tensor.name,
                              tensor.bytes.data() < next ? "overlap" : "leave a hole behind"));
    }
    next += tensor.bytes.size();
  }
  if (next != data.data() + data.size()) {
    throw Error(fmt::format("{}: {} bytes behind the last tensor belong to none", file_name,
                            data.data() + data.size() - next));
  }
}

}  // namespace

std::string_view name_of(Dtype dtype) {
  return row_of(dtype).name;
}
std::size_t bytes_of(Dtype dtype) {
  return row_of(dtype).bytes;
}
std::optional<Format> format_of(Dtype dtype) {
  return row_of(dtype).format;
}

Dtype dtype_of(Format format) {
  for (const DtypeRow& row : kDtypes) {
    if (row.format == format) return row.dtype;
  }
  throw Error("a format without a safetensors dtype");
}

const StoredTensor* Safetensors::find(std::string_view name) const {
  const auto found = std::find_if(tensors.begin(), tensors.end(),
                                  [&](const StoredTensor& tensor) { return tensor.name == name; });
  return found == tensors.end() ? nullptr : &*found;
}

Safetensors parse_safetensors(std::span<const std::byte> file, std::string_view file_name) {
  if (file.size() < kLengthBytes) {
    throw Error(
        fmt::format("{}: {} bytes are too few for a safetensors file", file_name, file.size()));
  }
  std::uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, file.data(), kLengthBytes);
  if (header_bytes > kHeaderBytesMax) {
    throw Error(fmt::format("{}: the header claims {} bytes, more than the {} allowed", file_name,
                            header_bytes, kHeaderBytesMax));
  }
  if (header_bytes > file.size() - kLengthBytes) {
    throw Error(
        fmt::format("{}: the header claims {} bytes, but only {} follow: truncated, or not "
                    "a safetensors file",
                    file_name, header_bytes, file.size() - kLengthBytes));
  }
  const auto data = file.subspan(kLengthBytes + header_bytes);
  const std::string_view text(reinterpret_cast<const char*>(file.data()) + kLengthBytes,
                              header_bytes);
  const Json header = parse_strictly(text, file_name);
  if (!header.is_object()) throw Error(fmt::format("{}: the header is no object", file_name));
  Safetensors content;
  for (const auto& [name, entry] : header.items()) {
    const Fields fields(entry, fmt::format("{}: {}", file_name, name));
    if (name == "__metadata__") {
      for (const auto& [key, value] : entry.items()) content.metadata[key] = fields.text(key);
    } else {
      content.tensors.push_back(read_tensor(name, fields, data));
    }
  }
  require_partition(content.tensors, data, file_name);
  return content;
}

std::vector<std::byte> print_safetensors(const Safetensors& content) {
  Json header = Json::object();
  if (!content.metadata.empty()) header["__metadata__"] = content.metadata;
  std::uint64_t offset = 0;
  for (const StoredTensor& tensor : content.tensors) {
    header[tensor.name] = {{"dtype", name_of(tensor.dtype)},
                           {"shape", tensor.shape},
                           {"data_offsets", {offset, offset + tensor.bytes.size()}}};
    offset += tensor.bytes.size();
  }
  std::string text = header.dump(-1, ' ', false, Json::error_handler_t::replace);
  text.resize((text.size() + 7) / 8 * 8, ' ');  // the data start on a multiple of 8 bytes
  const std::uint64_t header_bytes = text.size();
  std::vector<std::byte> file(kLengthBytes + text.size());
  file.reserve(file.size() + offset);
  std::memcpy(file.data(), &header_bytes, kLengthBytes);
  std::memcpy(file.data() + kLengthBytes, text.data(), text.size());
  for (const StoredTensor& tensor : content.tensors) {
    file.insert(file.end(), tensor.bytes.begin(), tensor.bytes.end());
  }
  return file;
}

}  // namespace attest
