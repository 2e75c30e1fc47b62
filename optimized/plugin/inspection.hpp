// What must hold of a plugin's file before anything of it is executed. The ELF file itself is read
// by the emulator's linkage.hpp, which `attest run` uses too.
#pragma once
#include <filesystem>

#include "optimized/emulator/runtime/linkage.hpp"

namespace attest {

/// Throws Error when this cannot be a plugin: missing, no shared library, no attest_subject, or a
/// CUDA runtime of its own inside.
emulator::Linkage inspect_plugin(const std::filesystem::path& path);

/// Throws Error when the emulator cannot run its kernels, which a GPU may be able to.
void demand_emulable(const emulator::Linkage& linkage, const std::filesystem::path& path);

}  // namespace attest
