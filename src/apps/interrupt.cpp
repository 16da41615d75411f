#include "apps/interrupt.h"

#include <atomic>
#include <csignal>

#include <unistd.h>

namespace sluice {

namespace {

std::atomic<int> interrupts{0};
static_assert(std::atomic<int>::is_always_lock_free);

void on_interrupt(int) {
  if (interrupts.fetch_add(1) > 0) _exit(interrupted_exit_code);
}

void handle(int signal, void (*handler)(int)) {
  struct sigaction action{};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigaction(signal, &action, nullptr);
}

}  // namespace

InterruptGuard::InterruptGuard(std::initializer_list<int> signals) : signals_(signals) {
  interrupts = 0;
  for (const int signal : signals_) handle(signal, on_interrupt);
}

InterruptGuard::~InterruptGuard() {
  for (const int signal : signals_) handle(signal, SIG_DFL);
}

bool InterruptGuard::interrupted() const { return interrupts > 0; }

}  // namespace sluice
