#pragma once
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "server/http.h"
#include "server/reply.h"

namespace sluice {

enum class LogStyle : std::uint8_t { text, json };

/// What the log tells of one request.
struct LoggedRequest {
  std::string id, method, path, peer, model;
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
  int status = 0;
  std::string outcome;  // why generation ended; empty if there was none
  Usage usage;
  Timings timings;

  explicit LoggedRequest(const HttpRequest& request)
      : id(request.id), method(request.method), path(request.path), peer(request.peer) {}
};

/// One line a request on standard error.
class RequestLog {
 public:
  RequestLog(LogStyle style, bool enabled) : style_(style), enabled_(enabled) {}
  void write(const LoggedRequest& request) const;
  /// An event of the server itself, in the same style.
  void note(std::string_view text) const;

 private:
  LogStyle style_;
  bool enabled_;
};

/// The line that write() writes.
std::string log_line(const LoggedRequest& request, LogStyle style, double total_ms);

}  // namespace sluice
