#include "server/http_parser.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>

#include "base/check.h"

namespace sluice {

namespace http = boost::beast::http;
using boost::system::error_code;
using BeastView = boost::beast::string_view;

namespace {

constexpr std::size_t max_fields = 512;
// A body that is announced is not believed before it comes.
constexpr std::size_t max_reserved_bytes = 64u << 10;
// Beast wants this much of the end of a chunked body at once; no chunked body ends with less after any cut.
constexpr std::size_t min_chunked_bytes = 5;

std::string_view view_of(BeastView text) { return {text.data(), text.size()}; }

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return lower;
}

bool all_digits(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

/// None for a broken escape, or one that stands for a control character.
std::optional<std::string> percent_decoded(std::string_view text) {
  std::string decoded;
  decoded.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    if (i + 2 >= text.size()) return std::nullopt;
    const int high = hex_digit(text[i + 1]), low = hex_digit(text[i + 2]);
    if (high < 0 || low < 0) return std::nullopt;
    const int value = high * 16 + low;
    if (value < 0x20 || value == 0x7f) return std::nullopt;
    decoded += static_cast<char>(value);
    i += 2;
  }
  return decoded;
}

/// A request line that is sound but for its version.
bool names_other_version(std::string_view bytes) {
  const std::string_view line = bytes.substr(0, bytes.find("\r\n"));
  const std::size_t space = line.rfind(' ');
  if (space == std::string_view::npos || line.find(' ') == space) return false;
  const std::string_view version = line.substr(space + 1);
  return version.size() == 8 && version.starts_with("HTTP/") && all_digits(version.substr(5, 1)) && version[6] == '.' &&
         all_digits(version.substr(7, 1));
}

}  // namespace

class HttpParser::Reader final : public http::basic_parser<true> {
 public:
  Reader(std::size_t max_header_bytes, std::size_t max_body_bytes)
      : max_header_bytes_(max_header_bytes), max_body_bytes_(max_body_bytes) {
    header_limit(static_cast<std::uint32_t>(std::min<std::size_t>(max_header_bytes, UINT32_MAX)));
    body_limit(max_body_bytes);
    eager(true);
  }

  /// Returns how much of `bytes` it has understood.
  std::size_t read(std::string_view bytes);
  void fail(int status, std::string message) {
    state = State::failed;
    fault = {status, std::move(message)};
  }

  HttpRequest request;
  HttpFault fault;
  State state = State::head;
  bool started = false, expects_continue = false, http_1_0 = false;
  std::size_t min_bytes = 0;  // do not read less at once

 private:
  void stop(error_code& error, int status, std::string message) {
    fail(status, std::move(message));
    error = http::error::bad_value;
  }
  void explain(error_code error, std::string_view bytes);
  void take_target(std::string_view target, error_code& error);

  void on_request_impl(http::verb, BeastView method, BeastView target, int version, error_code& error) override;
  void on_field_impl(http::field, BeastView name, BeastView value, error_code& error) override;
  void on_header_impl(error_code& error) override;
  void on_body_init_impl(const boost::optional<std::uint64_t>& length, error_code& error) override;
  std::size_t on_body_impl(BeastView body, error_code& error) override;
  std::size_t on_chunk_body_impl(std::uint64_t, BeastView body, error_code& error) override {
    return on_body_impl(body, error);
  }
  void on_chunk_header_impl(std::uint64_t, BeastView, error_code&) override {}
  void on_finish_impl(error_code&) override { state = State::complete; }
  void on_response_impl(int, BeastView, int, error_code&) override { CHECK(false); }

  const std::size_t max_header_bytes_, max_body_bytes_;
  std::size_t head_bytes_ = 0;  // understood so far, without spaces around values
  std::size_t content_lengths_ = 0;
};

std::size_t HttpParser::Reader::read(std::string_view bytes) {
  error_code error;
  started = true;
  const std::size_t taken = put(boost::asio::const_buffer(bytes.data(), bytes.size()), error);
  if (error && error != http::error::need_more) {
    if (state != State::failed) explain(error, bytes);
    return taken;
  }
  if (state == State::head && head_bytes_ + bytes.size() - taken >= max_header_bytes_) {
    explain(http::error::header_limit, bytes);
  } else if (state == State::body && bytes.size() - taken >= max_header_bytes_) {
    fail(400, "a chunk header or the trailers are too long");
  }
  return taken;
}

void HttpParser::Reader::explain(error_code error, std::string_view bytes) {
  if (error == http::error::header_limit) {
    fail(431, fmt::format("the headers are longer than {} bytes", max_header_bytes_));
  } else if (error == http::error::body_limit) {
    fail(413, fmt::format("the body is longer than {} bytes, the limit of this server", max_body_bytes_));
  } else if (error == http::error::bad_version && names_other_version(bytes)) {
    fail(505, "this server speaks HTTP/1.1 and HTTP/1.0");
  } else {
    fail(400, fmt::format("this is no HTTP request: {}", error.message()));
  }
}

void HttpParser::Reader::on_request_impl(http::verb, BeastView method, BeastView target, int version,
                                         error_code& error) {
  request.method = view_of(method);
  head_bytes_ = method.size() + target.size();
  http_1_0 = version == 10;
  take_target(view_of(target), error);
}

void HttpParser::Reader::take_target(std::string_view target, error_code& error) {
  target = target.substr(0, target.find('#'));
  if (target == "*" && request.method == "OPTIONS") {
    request.path = target;
    return;
  }
  const std::size_t scheme_end = target.find("://");
  if (scheme_end != std::string_view::npos && scheme_end < target.find_first_of("/?")) {
    // The absolute form, as a proxy gets it: the host is not looked at.
    target.remove_prefix(scheme_end + 3);
    target.remove_prefix(std::min(target.find_first_of("/?"), target.size()));
    if (!target.starts_with('/')) return stop(error, 400, "the target of the request has no path");
  }
  if (!target.starts_with('/')) return stop(error, 400, "the target of the request must begin with a slash");
  const std::size_t mark = target.find('?');
  auto path = percent_decoded(target.substr(0, mark));
  if (!path) {
    return stop(error, 400, "the path of the request has control characters, or a % without two hexadecimal digits");
  }
  request.path = std::move(*path);
  if (mark != std::string_view::npos) request.query = target.substr(mark + 1);
}

void HttpParser::Reader::on_field_impl(http::field field, BeastView name, BeastView value, error_code& error) {
  if (state != State::head) return;  // trailers are read over
  head_bytes_ += name.size() + value.size() + 4;
  if (head_bytes_ > max_header_bytes_) {
    return stop(error, 431, fmt::format("the headers are longer than {} bytes", max_header_bytes_));
  }
  if (request.headers.size() >= max_fields) {
    return stop(error, 431, fmt::format("there are more than {} header fields", max_fields));
  }
  if (field == http::field::content_length && (++content_lengths_ > 1 || !all_digits(view_of(value)))) {
    return stop(error, 400, "Content-Length must be one number");
  }
  request.headers.emplace_back(lower_case(view_of(name)), view_of(value));
}

void HttpParser::Reader::on_header_impl(error_code& error) {
  std::size_t hosts = 0, encodings = 0;
  std::string encoding, expect;
  for (const auto& [name, value] : request.headers) {
    if (name == "host") ++hosts;
    if (name == "expect") expect = lower_case(value);
    if (name != "transfer-encoding") continue;
    ++encodings;
    encoding = lower_case(value);
  }
  if (hosts > 1 || (hosts == 0 && !http_1_0)) return stop(error, 400, "the request needs one Host header");
  if (encodings > 0) {
    if (content_lengths_ > 0) {
      return stop(error, 400, "a request has either Content-Length or Transfer-Encoding");
    }
    if (http_1_0) return stop(error, 400, "HTTP/1.0 has no Transfer-Encoding");
    if (encodings > 1 || encoding != "chunked") {
      return stop(error, 501, "the only Transfer-Encoding that this server knows is \"chunked\"");
    }
  }
  if (!expect.empty() && expect != "100-continue") {
    return stop(error, 417, "the only expectation that this server knows is \"100-continue\"");
  }
  expects_continue = !expect.empty() && !http_1_0;
  state = State::body;
  if (chunked()) min_bytes = min_chunked_bytes;
}

void HttpParser::Reader::on_body_init_impl(const boost::optional<std::uint64_t>& length, error_code&) {
  if (length) request.body.reserve(static_cast<std::size_t>(std::min<std::uint64_t>(*length, max_reserved_bytes)));
}

std::size_t HttpParser::Reader::on_body_impl(BeastView body, error_code&) {
  request.body.append(body.data(), body.size());
  return body.size();
}

HttpParser::HttpParser(std::size_t max_header_bytes, std::size_t max_body_bytes)
    : reader_(std::make_unique<Reader>(max_header_bytes, max_body_bytes)) {}

HttpParser::~HttpParser() = default;

void HttpParser::feed(std::string_view& bytes) {
  // Empty lines between two requests are no request.
  while (!reader_->started && (bytes.starts_with('\r') || bytes.starts_with('\n'))) bytes.remove_prefix(1);
  if (bytes.empty() || !wants_more()) return;
  const std::size_t held = pending_.size();
  if (held == 0 && bytes.size() >= reader_->min_bytes) {
    bytes.remove_prefix(reader_->read(bytes));
    if (!wants_more()) return;
    pending_ = bytes;
  } else {
    pending_ += bytes;
    if (pending_.size() >= reader_->min_bytes) {
      const std::size_t taken = reader_->read(pending_);
      if (!wants_more()) {
        // What was held did not complete the request, so all that is left came just now.
        bytes.remove_prefix(taken > held ? taken - held : 0);
        pending_ = {};
        return;
      }
      pending_.erase(0, taken);
    }
  }
  bytes = {};
}

HttpParser::State HttpParser::state() const { return reader_->state; }
bool HttpParser::wants_more() const { return state() == State::head || state() == State::body; }
bool HttpParser::started() const { return reader_->started; }
std::size_t HttpParser::body_bytes() const { return reader_->request.body.size(); }
bool HttpParser::expects_continue() const { return reader_->expects_continue; }
bool HttpParser::keep_alive() const { return reader_->keep_alive(); }
bool HttpParser::http_1_0() const { return reader_->http_1_0; }
const HttpFault& HttpParser::fault() const { return reader_->fault; }

HttpRequest HttpParser::take() {
  CHECK(state() == State::complete);
  return std::move(reader_->request);
}

}  // namespace sluice
