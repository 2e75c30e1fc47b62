// What a shared library or a program says about itself in its ELF file: which libcudart it wants,
// whether it is a subject, what device code it carries. Reads the file without loading it, so that
// it can be refused with a sentence instead of a loader's message. Knows nothing of running
// anything.
#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace attest::emulator {

struct Linkage {
  unsigned cudart_major = 0;     // of the libcudart.so.N it needs; 0: it needs none
  bool defines_subject = false;  // exports attest_subject
  bool has_device_code = false;  // nvcc put kernels into it
  bool static_cudart = false;    // has them, but a runtime of its own: nvcc's default
  bool relocatable = false;      // nvcc -rdc=true
  bool has_ptx = false;          // device code that the emulator can run
};

enum class ElfKind : std::uint8_t { library, program };

/// Throws attest::Error for a file that is missing or no ELF64 x86-64 file of that kind.
Linkage inspect_linkage(const std::filesystem::path& path, ElfKind kind = ElfKind::library);
/// The same of bytes in memory; `name` is for the message.
Linkage inspect_linkage(std::span<const std::byte> bytes, const std::string& name,
                        ElfKind kind = ElfKind::library);

/// The PTX that it carries, one text per translation unit and architecture. Throws as above.
std::vector<std::string> embedded_ptx(const std::filesystem::path& path);

/// Why its kernels cannot run on the emulator, with what to do; empty when they can.
std::string emulation_obstacle(const Linkage& linkage);

}  // namespace attest::emulator
