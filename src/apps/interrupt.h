#pragma once
#include <csignal>
#include <initializer_list>
#include <vector>

namespace sluice {

/// While one lives, the first Ctrl-C (or another of its signals) only sets a mark and a second one ends the program
/// with exit code 130.
class InterruptGuard {
 public:
  explicit InterruptGuard(std::initializer_list<int> signals = {SIGINT});
  ~InterruptGuard();
  InterruptGuard(const InterruptGuard&) = delete;
  InterruptGuard& operator=(const InterruptGuard&) = delete;

  bool interrupted() const;

 private:
  std::vector<int> signals_;
};

}  // namespace sluice
