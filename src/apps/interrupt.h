#pragma once
#include <csignal>
#include <initializer_list>
#include <vector>

namespace sluice {

/// Of a command that Ctrl-C ended: 128 + SIGINT.
inline constexpr int interrupted_exit_code = 130;

/// Thrown to end what was interrupted.
struct Interrupted {};

/// While one lives, the first Ctrl-C (or another of its signals) only sets a mark and a second one ends the program
/// with interrupted_exit_code.
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
