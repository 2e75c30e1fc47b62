// The plugin inside the worker: loaded, and its table checked. Throws Error for whatever makes it
// unusable. Which libcudart it runs on was decided before.
#pragma once
#include <filesystem>
#include <optional>
#include <string>

#include "optimized/plugin/attest_subject.h"
#include "optimized/plugin/cuda_runtime.hpp"
#include "optimized/plugin/protocol.hpp"

namespace attest {

/// The table of the library at `path`. `runtime` is nullptr for a plugin that links no libcudart.
const AttestSubject& load_plugin(const std::filesystem::path& path, const CudaRuntime* runtime);

/// What is wrong with a declaration, or nothing.
std::optional<std::string> wrong_precision(const AttestPrecision& precision);

/// What the plugin says of itself, in the greeting.
void describe(const AttestSubject& subject, const CudaRuntime* runtime, ReplyHeader& reply);

}  // namespace attest
