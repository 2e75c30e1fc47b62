// Processes that a process started. Those of a plugin end with the worker that it was loaded into.
#pragma once
#include <sys/types.h>

#include <vector>

namespace attest {

/// The children of a living process, and theirs, in whatever group or session they are.
std::vector<pid_t> offspring_of(pid_t process);

/// Kills the children of a living process, and theirs, in whatever group or session they are.
void kill_children_of(pid_t process);

}  // namespace attest
