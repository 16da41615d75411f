#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "server/http.h"

namespace sluice {

/// Why a request is not taken: the status and the message of the answer.
struct HttpFault {
  int status = 400;
  std::string message;
};

/// Reads one request from bytes as they come, cut anywhere. Holds no more than the limits allow: the part of the head
/// that is not complete, and the body as far as it has come.
class HttpParser {
 public:
  enum class State : std::uint8_t { head, body, complete, failed };

  HttpParser(std::size_t max_header_bytes, std::size_t max_body_bytes);
  ~HttpParser();
  HttpParser(const HttpParser&) = delete;
  HttpParser& operator=(const HttpParser&) = delete;

  /// Takes what belongs to the request from the front of `bytes`; something is left only when it is complete or failed.
  void feed(std::string_view& bytes);

  State state() const;
  /// Some of the request has come (empty lines before it do not count).
  bool started() const;
  std::size_t body_bytes() const;
  /// In the states body and complete: the client waits for a "100 Continue" before it sends the body.
  bool expects_continue() const;
  /// In the state complete.
  bool keep_alive() const;
  bool http_1_0() const;
  HttpRequest take();
  /// In the state failed.
  const HttpFault& fault() const;

 private:
  class Reader;
  bool wants_more() const;

  std::unique_ptr<Reader> reader_;
  std::string pending_;  // came, but is not understood before more comes
};

}  // namespace sluice
