// What ptxas, the assembler of the CUDA Toolkit, says of kernels: registers and spills. Starts a
// program; knows nothing of what kernels compute.
#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>

namespace attest {

/// What one kernel takes on one architecture, per thread but for the shared bytes.
struct KernelResources {
  int registers = 0;
  std::int64_t stack_bytes = 0, spill_bytes = 0;  // spill_bytes: stores and loads together
  std::int64_t static_shared_bytes = 0;
  bool operator==(const KernelResources&) const = default;
};
/// By name; as ptxas writes them, mangled.
using Resources = std::map<std::string, KernelResources>;

/// The assembler: what ATTEST_PTXAS names, the one beside the nvcc that built attest, or one in
/// PATH; nothing when there is none.
std::optional<std::filesystem::path> assembler();

/// Assembles all PTX of `plugin` for sm_`architecture`. Throws Error when the plugin cannot be read
/// or ptxas fails.
Resources assemble(const std::filesystem::path& ptxas, const std::filesystem::path& plugin,
                   int architecture);

/// From what `ptxas -v` prints.
Resources read_resources(const std::string& printed);

}  // namespace attest
