// Signal handlers may touch little: one lock-free flag.
#include "reports/commands/interruption.hpp"

#include <csignal>
#include <initializer_list>

namespace attest {
namespace {

std::atomic<bool> interrupted = false;
static_assert(std::atomic<bool>::is_always_lock_free);

void interrupt(int) {
  interrupted = true;
}

}  // namespace

const std::atomic<bool>& interruption() {
  static const bool installed = [] {
    struct sigaction action {};
    action.sa_handler = interrupt;
    action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
    for (const int signal : {SIGINT, SIGTERM}) sigaction(signal, &action, nullptr);
    // A terminal that goes away; under nohup it is ignored, and stays so.
    struct sigaction before {};
    sigaction(SIGHUP, nullptr, &before);
    if (before.sa_handler != SIG_IGN) sigaction(SIGHUP, &action, nullptr);
    return true;
  }();
  static_cast<void>(installed);
  return interrupted;
}

}  // namespace attest
