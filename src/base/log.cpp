#include "base/log.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>

namespace sluice {

namespace {

spdlog::level::level_enum level_of(LogLevel level) {
  switch (level) {
    case LogLevel::debug: return spdlog::level::debug;
    case LogLevel::info: return spdlog::level::info;
    case LogLevel::warning: return spdlog::level::warn;
    case LogLevel::error: return spdlog::level::err;
    case LogLevel::off: return spdlog::level::off;
  }
  return spdlog::level::off;
}

spdlog::logger& logger() {
  static spdlog::logger instance = [] {
    spdlog::logger made("sluice", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made.set_level(spdlog::level::warn);
    made.set_pattern("%Y-%m-%dT%H:%M:%S.%e %l: %v");
    return made;
  }();
  return instance;
}

}  // namespace

void set_log_level(LogLevel level) { logger().set_level(level_of(level)); }

void log_message(LogLevel level, std::string_view text) {
  logger().log(level_of(level), spdlog::string_view_t(text.data(), text.size()));
}

void log_plain(std::string_view line) {
  static spdlog::logger plain = [] {
    spdlog::logger made("plain", std::make_shared<spdlog::sinks::stderr_sink_mt>());
    made.set_pattern("%v");
    return made;
  }();
  plain.log(spdlog::level::critical, spdlog::string_view_t(line.data(), line.size()));
}

}  // namespace sluice
