// Reads containers. See fatbin.hpp. Every size is checked against what is really there before it is
// used, since a container may come from any file.
#include "optimized/emulator/fatbin/fatbin.hpp"

#include <lz4.h>
#include <zstd.h>

#include <algorithm>
#include <cstring>

namespace attest::emulator::fatbin {
namespace {

constexpr std::uint32_t kContainerMagic = 0xba55ed50, kWrapperMagic = 0x466243b1;
constexpr std::size_t kContainerHeaderBytes = 16, kEntryHeaderBytes = 64;
constexpr std::uint16_t kKindPtx = 1, kKindElf = 2;
constexpr std::uint64_t kFlagLz4 = 0x2000, kFlagZstd = 0x8000, kFlagArchitectureSpecific = 0x100000;
// Nine times the largest PTX text met in practice (14.5 MB); beyond it lies a decompression bomb.
constexpr std::uint64_t kTextBytesMax = std::uint64_t{1} << 27;

[[noreturn]] void damaged(const std::string& what) {
  throw FatbinError(FatbinError::Kind::damaged, "the fat binary is damaged: " + what);
}

template <typename T>
T load(std::span<const std::byte> bytes, std::size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

Image::Compression compression_of(std::uint64_t flags, std::uint32_t compressed_bytes) {
  if ((flags & kFlagZstd) != 0) return Image::Compression::zstd;
  if ((flags & kFlagLz4) != 0) return Image::Compression::lz4;
  return compressed_bytes == 0 ? Image::Compression::none : Image::Compression::unknown;
}

struct Entry {
  Image image;
  std::uint64_t bytes;  // header and payload
};

Entry read_entry(std::span<const std::byte> bytes) {
  if (bytes.size() < kEntryHeaderBytes) damaged("an entry is cut off");
  const auto kind = load<std::uint16_t>(bytes, 0);
  const auto header_bytes = load<std::uint32_t>(bytes, 4);
  const auto payload_bytes = load<std::uint64_t>(bytes, 8);
  const auto compressed_bytes = load<std::uint32_t>(bytes, 16);
  const auto name_offset = load<std::uint32_t>(bytes, 32),
             name_bytes = load<std::uint32_t>(bytes, 36);
  const auto flags = load<std::uint64_t>(bytes, 40);
  if (header_bytes < kEntryHeaderBytes || header_bytes > bytes.size()) {
    damaged("an entry's header has an impossible size");
  }
  if (payload_bytes > bytes.size() - header_bytes) damaged("an entry's payload is cut off");
  if (compressed_bytes > payload_bytes) damaged("compressed data exceed their entry");
  if (name_offset > header_bytes || name_bytes > header_bytes - name_offset) {
    damaged("a name lies outside its header");
  }
  Image image;
  image.kind = kind == kKindPtx   ? Image::Kind::ptx
               : kind == kKindElf ? Image::Kind::elf
                                  : Image::Kind::other;
  image.compression = compression_of(flags, compressed_bytes);
  image.architecture_specific = (flags & kFlagArchitectureSpecific) != 0;
  image.architecture = load<std::uint32_t>(bytes, 28);
  image.raw_bytes = load<std::uint64_t>(bytes, 56);
  image.source_name = {reinterpret_cast<const char*>(bytes.data()) + name_offset, name_bytes};
  const bool compressed = image.compression != Image::Compression::none;
  image.payload = bytes.subspan(header_bytes, compressed ? compressed_bytes : payload_bytes);
  return {image, header_bytes + payload_bytes};
}

std::string decompressed(const Image& image) {
  const std::uint64_t raw = image.raw_bytes;
  if (raw == 0 || raw > kTextBytesMax) damaged("the size of its PTX is impossible");
  const void* source = image.payload.data();
  const std::size_t source_bytes = image.payload.size();
  std::string text;
  if (image.compression == Image::Compression::zstd) {
    // The frame repeats the size, so that a lie in the entry is found before memory is taken.
    const unsigned long long framed = ZSTD_getFrameContentSize(source, source_bytes);
    if (framed != raw && framed != ZSTD_CONTENTSIZE_UNKNOWN) damaged("two sizes of its PTX differ");
    text.resize(raw);
    const std::size_t written = ZSTD_decompress(text.data(), raw, source, source_bytes);
    if (ZSTD_isError(written) != 0 || written != raw) damaged("its zstd data cannot be read");
    return text;
  }
  constexpr std::uint64_t kLz4RatioMax = 255;  // what one byte of an LZ4 length can add
  if (raw > (source_bytes + 1) * kLz4RatioMax) damaged("the size of its PTX is impossible");
  text.resize(raw);
  const int written = LZ4_decompress_safe(static_cast<const char*>(source), text.data(),
                                          static_cast<int>(source_bytes), static_cast<int>(raw));
  if (written < 0 || static_cast<std::uint64_t>(written) != raw) {
    damaged("its lz4 data cannot be read");
  }
  return text;
}

}  // namespace

std::uint64_t container_bytes(std::span<const std::byte> bytes) {
  if (bytes.size() < kContainerHeaderBytes) damaged("its header is cut off");
  if (load<std::uint32_t>(bytes, 0) != kContainerMagic) damaged("its magic number is missing");
  const auto version = load<std::uint16_t>(bytes, 4), header_bytes = load<std::uint16_t>(bytes, 6);
  if (version != 1 || header_bytes < kContainerHeaderBytes) {
    throw FatbinError(FatbinError::Kind::unsupported, "the fat binary has container version " +
                                                          std::to_string(version) +
                                                          "; only version 1 can be read");
  }
  const auto payload = load<std::uint64_t>(bytes, 8);
  if (payload > ~std::uint64_t{0} - header_bytes) damaged("its size is impossible");
  return header_bytes + payload;
}

std::vector<Image> read_images(std::span<const std::byte> bytes) {
  const std::uint64_t total = container_bytes(bytes);
  if (total > bytes.size()) damaged("it is cut off");
  std::span<const std::byte> rest = bytes.first(total).subspan(load<std::uint16_t>(bytes, 6));
  std::vector<Image> images;
  while (!rest.empty()) {
    const Entry entry = read_entry(rest);
    images.push_back(entry.image);
    rest = rest.subspan(entry.bytes);
  }
  return images;
}

std::string ptx_text(const Image& image) {
  if (image.compression == Image::Compression::unknown) {
    throw FatbinError(FatbinError::Kind::unsupported,
                      "the fat binary is compressed in an unknown way; build it with nvcc "
                      "-compress-mode=none");
  }
  std::string text =
      image.compression == Image::Compression::none
          ? std::string(reinterpret_cast<const char*>(image.payload.data()), image.payload.size())
          : decompressed(image);
  text.resize(std::min(text.size(), text.find('\0')));
  return text;
}

const Image& choose_ptx(const std::vector<Image>& images, std::uint32_t architecture) {
  // Smaller is better: runnable ones by how old they are, then others by how new.
  const auto rank = [architecture](const Image& image) {
    const bool runnable = image.architecture <= architecture;
    const std::uint64_t distance =
        runnable ? architecture - image.architecture : image.architecture - architecture;
    return std::uint64_t{!runnable} << 40 | distance << 1 |
           std::uint64_t{image.architecture_specific};
  };
  const Image* best = nullptr;
  for (const Image& image : images) {
    if (image.kind != Image::Kind::ptx) continue;
    if (best == nullptr || rank(image) < rank(*best)) best = &image;
  }
  if (best != nullptr) return *best;
  throw FatbinError(FatbinError::Kind::no_ptx,
                    "the fat binary holds machine code only, no PTX; build it with nvcc "
                    "-arch=compute_80 or -arch=sm_80, not with code=sm_80 alone");
}

std::span<const std::byte> container_of(const void* wrapper) {
  struct Wrapper {
    std::uint32_t magic, version;
    const std::byte* data;
  };
  Wrapper record;
  std::memcpy(&record, wrapper, sizeof record);
  if (record.magic != kWrapperMagic) damaged("its record has no magic number");
  if (record.version != 1 || record.data == nullptr) {
    throw FatbinError(FatbinError::Kind::relocatable,
                      "the fat binary holds relocatable device code (nvcc -rdc=true), which would "
                      "need a device linker; build without -rdc=true");
  }
  const std::uint64_t total = container_bytes({record.data, kContainerHeaderBytes});
  return {record.data, total};
}

}  // namespace attest::emulator::fatbin
