// A folder that goes away with the object that made it.
#pragma once
#include <filesystem>
#include <string_view>

namespace attest {

class TemporaryFolder {
 public:
  /// "attest_WHAT_" and six letters nobody has, in the system's folder for such. Throws Error when
  /// none can be made.
  explicit TemporaryFolder(std::string_view what);
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace attest
