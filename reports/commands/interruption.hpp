// Interruption: SIGINT and SIGTERM as a flag. The first asks for an end with a report; the second
// ends the program at once, as if nothing were in its way.
#pragma once
#include <atomic>

namespace attest {

/// Installs the handlers on the first call.
const std::atomic<bool>& interruption();

}  // namespace attest
