#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "server/http.h"

namespace sluice {

class HttpConnection;

/// The exchange that a handler sees: makes bytes of the answer and gives them to the connection.
class HttpResponder final : public HttpExchange {
 public:
  HttpResponder(std::shared_ptr<HttpConnection> connection, HttpRequest request, bool keep_alive, bool http_1_0);
  /// Answers 500 if nobody has answered, or breaks off a stream that nobody has ended.
  ~HttpResponder() override;
  HttpResponder(const HttpResponder&) = delete;
  HttpResponder& operator=(const HttpResponder&) = delete;

  const HttpRequest& request() const override { return request_; }
  std::string take_body() override;
  void add_header(std::string name, std::string value) override {
    headers_.emplace_back(std::move(name), std::move(value));
  }
  void send(HttpResponse response) override;
  void start_stream(int status, std::string_view content_type, HttpHeaders headers) override;
  void write(std::string_view bytes) override;
  void end_stream() override;
  bool closed() const override { return state_ == State::closed; }
  void on_close(std::function<void()> callback) override;
  void close_after() override { keep_alive_ = false; }

  /// The client is gone: the callback is run a little later, never from inside a call of the exchange.
  void client_gone();
  /// Answers with an error as far as that is still possible, else closes the connection.
  void give_up(int status, const std::string& message);

 private:
  enum class State : std::uint8_t { unanswered, streaming, answered, closed };
  void append_head_once();
  bool keeps_connection() const;
  void release_body();
  void complete();

  const std::shared_ptr<HttpConnection> connection_;
  HttpRequest request_;
  std::size_t body_bytes_;  // accounted for
  const bool http_1_0_, is_head_;
  bool keep_alive_;
  State state_ = State::unanswered;
  std::function<void()> on_close_;
  HttpHeaders headers_;  // of the answer, until its head is made
  // Of a stream.
  int status_ = 0;
  std::string content_type_;
  bool head_sent_ = false, has_body_ = true;
  bool kept_ = false;  // the head promised to keep the connection
};

}  // namespace sluice
