#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "server/http.h"

namespace sluice {

/// What stands before the body of an answer.
struct HttpHead {
  int status = 200;
  std::string_view content_type;  // empty: no such header
  const HttpHeaders* headers = nullptr;
  std::string_view id;                        // X-Request-Id; empty: none
  std::optional<std::size_t> content_length;  // none: it is not known, or there is no body
  bool chunked = false, keep_alive = true, http_1_0 = false;
};

/// Appends the status line, the headers and the empty line. Control characters in headers become spaces.
void append_head(std::string& out, const HttpHead& head);
/// Appends one chunk of "Transfer-Encoding: chunked". No bytes make no chunk: that would be the last one.
void append_chunk(std::string& out, std::string_view bytes);
inline constexpr std::string_view last_chunk = "0\r\n\r\n";

/// 1xx, 204 and 304 have no body.
bool status_has_body(int status);
HttpResponse json_response(int status, const Json& json);
/// Of answers that say "come again".
inline constexpr int retry_after_seconds = 1;
/// An error of this layer: OpenAI's error object; a 503 says when to come again.
HttpResponse http_error(int status, const std::string& message);

/// 1 to 128 printable ASCII characters without spaces and quotes.
bool is_sound_id(std::string_view id);
std::string random_id();

}  // namespace sluice
