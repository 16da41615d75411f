#pragma once
#include <chrono>
#include <cstdint>
#include <string>

namespace sluice {

/// One line on standard error that fills up, and is wiped when done. Without a terminal there it draws nothing.
class ProgressBar {
 public:
  /// What is counted: "requests"; bytes when it is empty.
  ProgressBar(std::string label, bool colored, std::string counted = {});
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  /// Done of all; draws at most some times a second.
  void update(std::uint64_t done, std::uint64_t total);

 private:
  std::string label_, counted_;
  bool colored_, enabled_, drawn_ = false;
  std::chrono::steady_clock::time_point last_{};
};

}  // namespace sluice
