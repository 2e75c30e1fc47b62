// A reader of ELF64 for linkage.hpp. Every offset is checked against the file's size before it is
// followed; a section that lies about itself counts as empty, since the loader will judge it
// anyway.
#include "optimized/emulator/runtime/linkage.hpp"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <optional>
#include <string_view>
#include <vector>

#include "optimized/emulator/fatbin/fatbin.hpp"
#include "reference/text.hpp"

namespace attest::emulator {
namespace {

using Bytes = std::span<const std::byte>;

constexpr std::uintmax_t kFileBytesMax = std::uintmax_t{1} << 31;
constexpr std::string_view kSubjectSymbol = "attest_subject", kCudart = "libcudart.so.";

template <typename T>
std::optional<T> load(Bytes bytes, std::uint64_t offset) {
  if (offset > bytes.size() || sizeof(T) > bytes.size() - offset) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

/// The NUL-terminated string at `offset` of a string table; empty when there is none.
std::string_view string_at(Bytes table, std::uint64_t offset) {
  if (offset >= table.size()) return {};
  const char* begin = reinterpret_cast<const char*>(table.data()) + offset;
  return {begin, strnlen(begin, table.size() - offset)};
}

class Elf {
 public:
  Elf(Bytes bytes, const std::string& name, ElfKind kind) : bytes_(bytes) {
    const auto header = load<Elf64_Ehdr>(bytes, 0);
    if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) {
      throw Error(name +
                  " is no shared library: it does not begin as an ELF file does; give the "
                  "path of a .so built with nvcc -shared");
    }
    if (header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_ident[EI_DATA] != ELFDATA2LSB ||
        header->e_machine != EM_X86_64) {
      throw Error(name + " is built for another machine; build it for 64-bit x86");
    }
    // A program is either at a fixed address or, by today's default, built like a library.
    const bool program = kind == ElfKind::program && header->e_type == ET_EXEC;
    if (header->e_type != ET_DYN && !program) {
      throw Error(name + (kind == ElfKind::library
                              ? " is an ELF file but no shared library; link it with -shared"
                              : " is an ELF file but no program; link it"));
    }
    for (std::uint64_t i = 0; i < header->e_shnum; ++i) {
      const auto section = load<Elf64_Shdr>(bytes, header->e_shoff + i * sizeof(Elf64_Shdr));
      if (!section) {
        throw Error(name +
                    " is cut off: its section table lies beyond its end; build or copy it "
                    "again");
      }
      sections_.push_back(*section);
    }
    if (header->e_shstrndx < sections_.size()) names_ = contents(sections_[header->e_shstrndx]);
  }

  /// A section's bytes, or none when it lies outside the file.
  Bytes contents(const Elf64_Shdr& section) const {
    if (section.sh_type == SHT_NOBITS || section.sh_offset > bytes_.size() ||
        section.sh_size > bytes_.size() - section.sh_offset) {
      return {};
    }
    return bytes_.subspan(section.sh_offset, section.sh_size);
  }

  Bytes named(std::string_view name) const {
    for (const Elf64_Shdr& section : sections_) {
      if (string_at(names_, section.sh_name) == name) return contents(section);
    }
    return {};
  }

  /// Calls `body` with each entry of the sections of `type`, and the string table they refer to.
  template <typename Entry, typename Body>
  void each(std::uint32_t type, Body body) const {
    for (const Elf64_Shdr& section : sections_) {
      if (section.sh_type != type || section.sh_link >= sections_.size()) continue;
      const Bytes strings = contents(sections_[section.sh_link]);
      const Bytes entries = contents(section);
      for (std::size_t at = 0; at + sizeof(Entry) <= entries.size(); at += sizeof(Entry)) {
        body(*load<Entry>(entries, at), strings);
      }
    }
  }

 private:
  Bytes bytes_, names_;
  std::vector<Elf64_Shdr> sections_;
};

unsigned major_of(std::string_view library) {
  if (!library.starts_with(kCudart)) return 0;
  unsigned major = 0;
  for (const char c : library.substr(kCudart.size())) {
    if (c < '0' || c > '9' || major > 1000) break;
    major = major * 10 + static_cast<unsigned>(c - '0');
  }
  return major;
}

/// Calls `body` with every PTX image. nvcc writes one container after another, each begun at a
/// multiple of eight bytes.
template <typename Body>
void each_ptx(Bytes fatbins, Body body) {
  constexpr std::size_t kAlignment = 8;
  while (!fatbins.empty()) {
    std::uint64_t bytes = 0;
    try {
      bytes = fatbin::container_bytes(fatbins);
      for (const fatbin::Image& image : fatbin::read_images(fatbins)) {
        if (image.kind == fatbin::Image::Kind::ptx) body(image);
      }
    } catch (const fatbin::FatbinError&) {
      bytes = kAlignment;  // Padding, or damage: the next container is looked for.
    }
    bytes = (bytes + kAlignment - 1) / kAlignment * kAlignment;
    fatbins = fatbins.subspan(std::min<std::uint64_t>(bytes, fatbins.size()));
  }
}

std::vector<std::byte> read_file(const std::filesystem::path& path) {
  const std::string name = path.string();
  std::error_code failed;
  const std::uintmax_t size = std::filesystem::file_size(path, failed);
  if (failed) throw Error(name + " cannot be read: " + failed.message());
  if (size > kFileBytesMax) throw Error(name + " is too large to be looked into (over 2 GiB)");
  std::vector<std::byte> bytes(size);
  std::ifstream file(path, std::ios::binary);
  file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(size));
  if (!file) throw Error(name + " cannot be read; check its permissions");
  return bytes;
}

}  // namespace

Linkage inspect_linkage(std::span<const std::byte> bytes, const std::string& name, ElfKind kind) {
  const Elf elf(bytes, name, kind);
  Linkage result;
  elf.each<Elf64_Dyn>(SHT_DYNAMIC, [&](const Elf64_Dyn& entry, Bytes strings) {
    if (entry.d_tag != DT_NEEDED) return;
    const unsigned major = major_of(string_at(strings, entry.d_un.d_val));
    if (major != 0) result.cudart_major = major;
  });
  elf.each<Elf64_Sym>(SHT_DYNSYM, [&](const Elf64_Sym& symbol, Bytes strings) {
    if (symbol.st_shndx != SHN_UNDEF && string_at(strings, symbol.st_name) == kSubjectSymbol) {
      result.defines_subject = true;
    }
  });
  const Bytes fatbins = elf.named(".nv_fatbin");
  // A record of the relocatable kind in .nvFatBinSegment proves nothing: nvcc adds one whenever it
  // links. What counts is whether there is relocatable code for it to refer to.
  result.relocatable = !elf.named("__nv_relfatbin").empty();
  result.has_device_code = !fatbins.empty() || result.relocatable;
  result.static_cudart = result.has_device_code && result.cudart_major == 0;
  each_ptx(fatbins, [&](const fatbin::Image&) { result.has_ptx = true; });
  return result;
}

Linkage inspect_linkage(const std::filesystem::path& path, ElfKind kind) {
  return inspect_linkage(read_file(path), path.string(), kind);
}

std::vector<std::string> embedded_ptx(const std::filesystem::path& path) {
  const std::vector<std::byte> bytes = read_file(path);
  const Elf elf(bytes, path.string(), ElfKind::library);
  std::vector<std::string> texts;
  each_ptx(elf.named(".nv_fatbin"),
           [&](const fatbin::Image& image) { texts.push_back(fatbin::ptx_text(image)); });
  return texts;
}

std::string emulation_obstacle(const Linkage& linkage) {
  if (linkage.static_cudart) {
    return "it has a CUDA runtime of its own inside (nvcc's default), which nothing can stand in "
           "for; link it with nvcc -cudart shared";
  }
  if (linkage.relocatable) {
    return "it holds relocatable device code, which needs a device linker; build it without "
           "-rdc=true";
  }
  if (linkage.has_device_code && !linkage.has_ptx) {
    return "its kernels are machine code only; build it with nvcc -arch=compute_80 or -arch=sm_80, "
           "which embed PTX";
  }
  if (linkage.cudart_major != 0 && linkage.cudart_major != 12 && linkage.cudart_major != 13) {
    return "it needs libcudart.so." + std::to_string(linkage.cudart_major) +
           "; build it with CUDA 12 or 13";
  }
  return {};
}

}  // namespace attest::emulator
