#include "server/request_log.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "base/json.h"
#include "base/log.h"

namespace sluice {

namespace {

std::string now_text() {
  const auto now = std::chrono::system_clock::now();
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count() % 1000;
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(std::chrono::system_clock::to_time_t(now)), ms);
}

std::string json_line(const Json& fields) {
  Json line = {{"time", now_text()}};
  line.update(fields);
  return line.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json fields_of(const LoggedRequest& request, double total_ms) {
  Json fields = {{"id", request.id},     {"method", request.method}, {"path", request.path},
                 {"peer", request.peer}, {"status", request.status}, {"total_ms", total_ms}};
  if (request.outcome.empty()) return fields;
  fields["model"] = request.model;
  fields["reason"] = request.outcome;
  fields["prompt_tokens"] = request.usage.prompt_tokens;
  fields["cached_tokens"] = request.usage.cached_tokens;
  fields["completion_tokens"] = request.usage.completion_tokens;
  fields["queued_ms"] = request.timings.queued_ms;
  fields["first_token_ms"] = request.timings.first_token_ms;
  return fields;
}

/// Paths come from outside: what would break the line is left out.
std::string printable(std::string_view text) {
  std::string out;
  for (const char c : text.substr(0, 200)) out += c >= ' ' && c <= '~' ? c : '?';
  return out;
}

}  // namespace

std::string log_line(const LoggedRequest& request, LogStyle style, double total_ms) {
  if (style == LogStyle::json) return json_line(fields_of(request, total_ms));
  std::string line = fmt::format("{} {} {} {}", request.id, request.method, printable(request.path), request.status);
  if (!request.outcome.empty()) {
    line +=
        fmt::format(" model={} prompt={} cached={} output={} reason={} queued={:.1f}ms first={:.1f}ms", request.model,
                    request.usage.prompt_tokens, request.usage.cached_tokens, request.usage.completion_tokens,
                    request.outcome, request.timings.queued_ms, request.timings.first_token_ms);
  }
  return line + fmt::format(" total={:.1f}ms", total_ms);
}

void RequestLog::write(const LoggedRequest& request) const {
  if (!enabled_) return;
  const auto taken = std::chrono::steady_clock::now() - request.start;
  const std::string line = log_line(request, style_, std::chrono::duration<double, std::milli>(taken).count());
  if (style_ == LogStyle::json) {
    log_plain(line);
  } else {
    log_message(LogLevel::info, line);
  }
}

void RequestLog::note(std::string_view text) const {
  if (style_ == LogStyle::json) {
    log_plain(json_line({{"message", text}}));
  } else {
    log_message(LogLevel::info, text);
  }
}

}  // namespace sluice
