// Processes that a plugin started: they end with the worker that the plugin was loaded into.
#pragma once
#include <sys/types.h>

namespace attest {

/// Kills the children of a living process, and theirs, in whatever group or session they are.
void kill_children_of(pid_t process);

}  // namespace attest
