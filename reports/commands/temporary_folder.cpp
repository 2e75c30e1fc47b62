// mkdtemp, and an end.
#include "reports/commands/temporary_folder.hpp"

#include <fmt/format.h>
#include <stdlib.h>

#include <string>
#include <system_error>

#include "reference/text.hpp"

namespace attest {

TemporaryFolder::TemporaryFolder(std::string_view what) {
  constexpr std::size_t kDrawn = 6;  // letters that mkdtemp chooses
  std::string name =
      (std::filesystem::temp_directory_path() / fmt::format("attest_{}_", what)).string();
  name.append(kDrawn, 'X');
  if (mkdtemp(name.data()) == nullptr) {
    throw Error(fmt::format("{}: no folder can be made here; set TMPDIR", name));
  }
  path_ = name;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace attest
