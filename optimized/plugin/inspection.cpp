// The order of the checks is the order in which a newcomer meets the errors.
#include "optimized/plugin/inspection.hpp"

#include <fstream>
#include <iterator>
#include <string>

#include "reference/text.hpp"

namespace attest {

unsigned inspect_plugin(const std::filesystem::path& path) {
  const std::string where = "plugin " + path.string() + ": ";
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) {
    throw Error(where + "there is no such file; give the path of a shared library");
  }
  std::ifstream file(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  if (!bytes.starts_with("\x7f"
                         "ELF"))
    throw Error(where + "it is no ELF shared library");
  const std::string stem = "libcudart.so.";
  const std::size_t at = bytes.find(stem);
  return at == std::string::npos
             ? 0
             : static_cast<unsigned>(std::stoi(bytes.substr(at + stem.size(), 2)));
}

}  // namespace attest
