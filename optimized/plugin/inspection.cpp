// The order of the checks is the order in which a newcomer meets the errors.
#include "optimized/plugin/inspection.hpp"

#include <string>

#include "reference/text.hpp"

namespace attest {

emulator::Linkage inspect_plugin(const std::filesystem::path& path) {
  const std::string where = "plugin " + path.string() + ": ";
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) {
    throw Error(where + "there is no such file; give the path of a shared library");
  }
  if (!std::filesystem::is_regular_file(path, ignored)) {
    throw Error(where + "it is no file; give the path of a shared library");
  }
  const emulator::Linkage linkage = emulator::inspect_linkage(path);
  if (!linkage.defines_subject) {
    throw Error(where +
                "it exports no attest_subject(); declare it extern \"C\" with default visibility, "
                "as optimized/plugin/skeleton_plugin.c does");
  }
  // attest allocates with the plugin's runtime, so on a GPU, too, it must be a shared one.
  if (linkage.static_cudart) throw Error(where + emulator::emulation_obstacle(linkage));
  return linkage;
}

void demand_emulable(const emulator::Linkage& linkage, const std::filesystem::path& path) {
  const std::string obstacle = emulator::emulation_obstacle(linkage);
  if (obstacle.empty()) return;
  throw Error("plugin " + path.string() + " cannot run on the emulator: " + obstacle);
}

}  // namespace attest
