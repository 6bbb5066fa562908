#include "cli/interrupts.h"

#include <csignal>

namespace fusediff {
namespace {

std::atomic<bool> noted{false};
std::atomic<int> noted_signal{0};

extern "C" void note_interrupt(int signal) {
  noted_signal.store(signal);
  noted.store(true);
}

}  // namespace

const std::atomic<bool>& catch_interrupts() {
  struct sigaction action = {};
  action.sa_handler = note_interrupt;
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  return noted;
}

bool is_interrupted() { return noted.load(); }

int interrupted_exit_code() { return 128 + noted_signal.load(); }

}  // namespace fusediff
