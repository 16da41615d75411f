#pragma once
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace sluice {

enum class LogLevel : unsigned char { debug, info, warning, error, off };

/// Messages below this level are dropped; warning until it is set.
void set_log_level(LogLevel level);
/// Writes one line to standard error, with time and level. Safe from many threads.
void log_message(LogLevel level, std::string_view text);
/// Writes a line as it is, whatever the level.
void log_plain(std::string_view line);

template <class... Args>
void log_info(fmt::format_string<Args...> format, Args&&... args) {
  log_message(LogLevel::info, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
void log_warning(fmt::format_string<Args...> format, Args&&... args) {
  log_message(LogLevel::warning, fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace sluice
