#include "apps/interrupt.h"

#include <atomic>
#include <csignal>

#include <unistd.h>

namespace sluice {

namespace {

constexpr int interrupted_exit_code = 130;
std::atomic<int> interrupts{0};
static_assert(std::atomic<int>::is_always_lock_free);

void on_interrupt(int) {
  if (interrupts.fetch_add(1) > 0) _exit(interrupted_exit_code);
}

void handle(void (*handler)(int)) {
  struct sigaction action{};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
}

}  // namespace

InterruptGuard::InterruptGuard() {
  interrupts = 0;
  handle(on_interrupt);
}

InterruptGuard::~InterruptGuard() { handle(SIG_DFL); }

bool InterruptGuard::interrupted() const { return interrupts > 0; }

}  // namespace sluice
