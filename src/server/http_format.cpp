#include "server/http_format.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>
#include <iterator>
#include <random>
#include <utility>

#include <fmt/format.h>

#include "server/api_error.h"

namespace sluice {

namespace {

constexpr std::array<std::pair<int, std::string_view>, 32> reasons = {{
    {200, "OK"},
    {201, "Created"},
    {202, "Accepted"},
    {204, "No Content"},
    {206, "Partial Content"},
    {301, "Moved Permanently"},
    {302, "Found"},
    {303, "See Other"},
    {304, "Not Modified"},
    {307, "Temporary Redirect"},
    {308, "Permanent Redirect"},
    {400, "Bad Request"},
    {401, "Unauthorized"},
    {403, "Forbidden"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {406, "Not Acceptable"},
    {408, "Request Timeout"},
    {409, "Conflict"},
    {411, "Length Required"},
    {413, "Content Too Large"},
    {415, "Unsupported Media Type"},
    {417, "Expectation Failed"},
    {422, "Unprocessable Content"},
    {429, "Too Many Requests"},
    {431, "Request Header Fields Too Large"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {502, "Bad Gateway"},
    {503, "Service Unavailable"},
    {504, "Gateway Timeout"},
    {505, "HTTP Version Not Supported"},
}};

std::string_view reason_of(int status) {
  const auto* found = std::ranges::find(reasons, status, &std::pair<int, std::string_view>::first);
  return found == reasons.end() ? "Unknown" : found->second;
}

/// "Tue, 01 Dec 2026 05:00:00 GMT", made once a second.
std::string_view current_date() {
  thread_local std::time_t made_at = -1;
  thread_local std::string text;
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  if (now == made_at) return text;
  std::tm utc{};
  gmtime_r(&now, &utc);
  constexpr std::array days = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  constexpr std::array months = {"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  text = fmt::format("{}, {:02} {} {} {:02}:{:02}:{:02} GMT", days.at(static_cast<std::size_t>(utc.tm_wday)),
                     utc.tm_mday, months.at(static_cast<std::size_t>(utc.tm_mon)), utc.tm_year + 1900, utc.tm_hour,
                     utc.tm_min, utc.tm_sec);
  made_at = now;
  return text;
}

void append_clean(std::string& out, std::string_view text) {
  for (const char c : text) out += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c;
}

void append_header(std::string& out, std::string_view name, std::string_view value) {
  append_clean(out, name);
  out += ": ";
  append_clean(out, value);
  out += "\r\n";
}

}  // namespace

void append_head(std::string& out, const HttpHead& head) {
  fmt::format_to(std::back_inserter(out), "HTTP/1.1 {} {}\r\n", head.status, reason_of(head.status));
  append_header(out, "Server", "sluice");
  append_header(out, "Date", current_date());
  if (!head.content_type.empty()) append_header(out, "Content-Type", head.content_type);
  if (head.content_length) append_header(out, "Content-Length", fmt::to_string(*head.content_length));
  if (head.chunked) append_header(out, "Transfer-Encoding", "chunked");
  if (!head.keep_alive) append_header(out, "Connection", "close");
  if (head.keep_alive && head.http_1_0) append_header(out, "Connection", "keep-alive");
  if (!head.id.empty()) append_header(out, "X-Request-Id", head.id);
  if (head.headers != nullptr) {
    for (const auto& [name, value] : *head.headers) append_header(out, name, value);
  }
  out += "\r\n";
}

void append_chunk(std::string& out, std::string_view bytes) {
  if (bytes.empty()) return;
  fmt::format_to(std::back_inserter(out), "{:x}\r\n", bytes.size());
  out += bytes;
  out += "\r\n";
}

bool status_has_body(int status) { return status >= 200 && status != 204 && status != 304; }

HttpResponse json_response(int status, const Json& json) {
  HttpResponse response;
  response.status = status;
  response.body = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  return response;
}

HttpResponse http_error(int status, const std::string& message) {
  HttpResponse response;
  response.status = status;
  response.body = ApiError(status, message).json().dump();
  if (status == 503) response.headers.emplace_back("Retry-After", fmt::to_string(retry_after_seconds));
  return response;
}

bool is_sound_id(std::string_view id) {
  return !id.empty() && id.size() <= 128 &&
         std::ranges::all_of(id, [](char c) { return c > ' ' && c < 0x7f && c != '"' && c != '\''; });
}

std::string random_id() {
  thread_local std::mt19937_64 random = [] {
    std::random_device device;
    std::seed_seq seed{device(), device(), device(), device()};
    return std::mt19937_64(seed);
  }();
  return fmt::format("{:016x}{:016x}", random(), random());
}

}  // namespace sluice
