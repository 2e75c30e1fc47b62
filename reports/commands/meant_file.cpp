// A path by its looks, when it is not there.
#include "reports/commands/meant_file.hpp"

#include <filesystem>
#include <string_view>

namespace attest {

bool is_meant_as_file(const std::string& word) {
  std::error_code failed;
  if (std::filesystem::exists(word, failed)) return true;
  if (std::string_view(word).ends_with(".safetensors")) return true;
  return word.find_first_of("/.") != std::string::npos &&
         word.find_first_of("= \t") == std::string::npos;
}

}  // namespace attest
