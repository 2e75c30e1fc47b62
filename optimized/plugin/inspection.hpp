// What can be said of a plugin's file without loading it, as far as opening it needs.
#pragma once
#include <filesystem>

namespace attest {

/// The major version of the libcudart the library links, or 0 for host code. Throws Error when it
/// cannot be a plugin: missing, no shared library, no attest_subject, static cudart, -rdc, no PTX.
unsigned inspect_plugin(const std::filesystem::path& path);

}  // namespace attest
