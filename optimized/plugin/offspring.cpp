// By /proc/PID/task/TID/children. A worker adopts what its children leave behind
// (PR_SET_CHILD_SUBREAPER), so that nobody gets out of this tree by losing a parent.
#include "optimized/plugin/offspring.hpp"

#include <signal.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace attest {
namespace {

/// Adds the children of `process`, and theirs.
void add_offspring(pid_t process, std::vector<pid_t>& offspring) {
  std::error_code ignored;
  const std::filesystem::path tasks = "/proc/" + std::to_string(process) + "/task";
  for (const auto& task : std::filesystem::directory_iterator(tasks, ignored)) {
    std::ifstream list(task.path() / "children");
    for (pid_t child = 0; list >> child;) {
      offspring.push_back(child);
      add_offspring(child, offspring);
    }
  }
}

}  // namespace

std::vector<pid_t> offspring_of(pid_t process) {
  std::vector<pid_t> offspring;
  add_offspring(process, offspring);
  return offspring;
}

void kill_children_of(pid_t process) {
  constexpr int kRounds = 2;  // what was forked between looking and killing is a child now
  for (int round = 0; round < kRounds; ++round) {
    for (const pid_t child : offspring_of(process)) kill(child, SIGKILL);
  }
}

}  // namespace attest
