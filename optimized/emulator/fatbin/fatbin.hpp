// The container in which nvcc embeds device code: a list of images, each PTX or machine code for
// one architecture, perhaps compressed. A pure function of bytes; knows neither PTX nor the
// runtime.
//
// A container is a 16-byte header {magic, version, header bytes, payload bytes} and then entries,
// each a header of 64 bytes or more {kind, header bytes, payload bytes, compressed bytes, version,
// architecture, name, flags, raw bytes}, options as text, and the payload.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace attest::emulator::fatbin {

/// Why no PTX could be had. `what()` is a sentence for the user.
struct FatbinError : std::runtime_error {
  enum class Kind : std::uint8_t {
    damaged,      // truncated, or sizes that contradict each other
    unsupported,  // another version of the container, another compression
    relocatable,  // nvcc -rdc=true: the code lies elsewhere, unlinked
    no_ptx,       // machine code only
  };
  Kind kind;
  FatbinError(Kind error_kind, const std::string& what)
      : std::runtime_error(what), kind(error_kind) {}
};

struct Image {
  enum class Kind : std::uint8_t { ptx, elf, other };
  enum class Compression : std::uint8_t { none, lz4, zstd, unknown };
  Kind kind = Kind::other;
  Compression compression = Compression::none;
  bool architecture_specific = false;  // compute_90a: runs on no later device
  std::uint32_t architecture = 0;      // 80 for compute_80
  std::string_view source_name = {};   // with nvcc -lineinfo or -G, else empty
  std::uint64_t raw_bytes = 0;         // of the text; 0 when it is not compressed
  std::span<const std::byte> payload = {};
};

/// Bytes that `container` occupies, from its header alone. Throws FatbinError when `bytes` cannot
/// begin one.
std::uint64_t container_bytes(std::span<const std::byte> bytes);

/// The images of the container that begins `bytes`; they refer into it. Throws FatbinError.
std::vector<Image> read_images(std::span<const std::byte> bytes);

/// The text of a PTX image, without the padding at its end. Throws FatbinError.
std::string ptx_text(const Image& image);

/// The image a device of `architecture` would compile: PTX for the newest architecture it has, else
/// for the oldest it has not, portable before architecture-specific. Throws FatbinError (no_ptx).
const Image& choose_ptx(const std::vector<Image>& images, std::uint32_t architecture);

/// The container behind the record that a program hands to __cudaRegisterFatBinary. The record and
/// the container's header are trusted to be readable: they are the program's own memory.
std::span<const std::byte> container_of(const void* wrapper);

}  // namespace attest::emulator::fatbin
