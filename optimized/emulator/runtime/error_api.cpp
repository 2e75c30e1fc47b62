// Errors: the last one of each thread, their names, and what is said of functions not emulated.
// Names come from the toolkit's own header (error_names.inc, made by stubs.cmake).
#include <algorithm>
#include <array>
#include <cctype>
#include <set>
#include <string>
#include <string_view>

#include "optimized/emulator/runtime/runtime.hpp"

namespace rt = attest::emulator::runtime;
using rt::AfterFault;
using rt::call;
using rt::Runtime;

namespace {

struct Row {
  int number;
  const char* name;
};
constexpr Row kErrors[] = {
#include "error_names.inc"
};

/// "illegal address" of "cudaErrorIllegalAddress": the names say what the sentences would.
std::string words_of(std::string_view name) {
  constexpr std::string_view kPrefix = "cudaError";
  if (name == "cudaSuccess") return "no error";
  name.remove_prefix(name.starts_with(kPrefix) ? kPrefix.size() : 0);
  std::string result;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const bool upper = std::isupper(static_cast<unsigned char>(name[i])) != 0;
    const bool after_lower = i > 0 && std::islower(static_cast<unsigned char>(name[i - 1])) != 0;
    if (upper && after_lower) result += ' ';
    result += static_cast<char>(std::tolower(static_cast<unsigned char>(name[i])));
  }
  return result;
}

const Row* find(cudaError_t error) {
  const auto found = std::find_if(std::begin(kErrors), std::end(kErrors), [&](const Row& row) {
    return row.number == static_cast<int>(error);
  });
  return found == std::end(kErrors) ? nullptr : found;
}

}  // namespace

extern "C" {

cudaError_t cudaGetLastError() {
  Runtime& runtime = Runtime::instance();
  const std::lock_guard lock(runtime.mutex);
  const cudaError_t error = runtime.sticky != cudaSuccess ? runtime.sticky : rt::last_error();
  rt::last_error() = cudaSuccess;
  if (error != cudaSuccess) rt::forgive_failures();
  return error;
}
cudaError_t cudaPeekAtLastError() {
  Runtime& runtime = Runtime::instance();
  const std::lock_guard lock(runtime.mutex);
  const cudaError_t error = runtime.sticky != cudaSuccess ? runtime.sticky : rt::last_error();
  if (error != cudaSuccess) rt::forgive_failures();
  return error;
}

const char* cudaGetErrorName(cudaError_t error) {
  const Row* row = find(error);
  return row == nullptr ? "unrecognized error code" : row->name;
}
const char* cudaGetErrorString(cudaError_t error) {
  const Row* row = find(error);
  if (row == nullptr) return "unrecognized error code";
  // The texts must outlive the call; a set never moves its elements.
  static std::set<std::string>& texts = *new std::set<std::string>;
  const std::lock_guard lock(Runtime::instance().mutex);
  return texts.insert(words_of(row->name)).first->c_str();
}

cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w,
                                            cudaChannelFormatKind kind) {
  return {x, y, z, w, kind};
}

/// What every function of the toolkit's libcudart does that has no definition here.
int attest_not_emulated(const char* name) {
  return call([&](Runtime&) {
    rt::complain(std::string(name) + " is not emulated; the call returns cudaErrorNotSupported");
    return cudaErrorNotSupported;
  });
}

}  // extern "C"
