#include "base/progress.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

namespace sluice {

namespace {
constexpr std::size_t width = 32, line_width = 72;
constexpr std::chrono::milliseconds between_drawings{66};
}  // namespace

ProgressBar::ProgressBar(std::string label, bool colored, std::string counted)
    : label_(std::move(label)), counted_(std::move(counted)), colored_(colored), enabled_(isatty(STDERR_FILENO) == 1) {}

ProgressBar::~ProgressBar() {
  if (drawn_) std::fputs(("\r" + std::string(line_width, ' ') + "\r").c_str(), stderr);
}

void ProgressBar::update(std::uint64_t done, std::uint64_t total) {
  const auto now = std::chrono::steady_clock::now();
  if (!enabled_ || total == 0 || (drawn_ && now - last_ < between_drawings)) return;
  last_ = now;
  drawn_ = true;
  const double share = std::min(1.0, static_cast<double>(done) / static_cast<double>(total));
  const auto filled = static_cast<std::size_t>(share * static_cast<double>(width));
  const std::string bar = std::string(filled, '#') + std::string(width - filled, '.');
  const std::string all = counted_.empty() ? fmt::format("{:.2f} GB", static_cast<double>(total) / 1e9)
                                           : fmt::format("{} {}", total, counted_);
  const std::string line = fmt::format("\r{} {}{}{} {:3.0f}% of {}", label_, colored_ ? "\x1b[36m" : "", bar,
                                       colored_ ? "\x1b[0m" : "", 100.0 * share, all);
  std::fputs(line.c_str(), stderr);
}

}  // namespace sluice
