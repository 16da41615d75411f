#pragma once

namespace sluice {

/// While one lives, the first Ctrl-C only sets a mark and a second one ends the program with exit code 130.
class InterruptGuard {
 public:
  InterruptGuard();
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  bool interrupted() const;
};

}  // namespace sluice
