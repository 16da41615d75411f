#pragma once
#include <functional>
#include <string>
#include <utility>

#include "server/http.h"

namespace sluice::test {

/// An exchange that keeps what it is told.
class FakeExchange : public HttpExchange {
 public:
  const HttpRequest& request() const override { return request_; }
  std::string take_body() override { return std::exchange(request_.body, {}); }
  void add_header(std::string name, std::string value) override { headers.emplace_back(name, value); }
  void send(HttpResponse given) override {
    response = std::move(given);
    ++answers;
  }
  void start_stream(int status, std::string_view, HttpHeaders) override { stream_status = status; }
  void write(std::string_view bytes) override {
    ++writes;
    written += bytes;
  }
  void end_stream() override { ++answers; }
  bool closed() const override { return false; }
  void on_close(std::function<void()> callback) override { left = std::move(callback); }
  void close_after() override {}

  HttpResponse response;
  HttpHeaders headers;
  std::string written;
  int answers = 0, writes = 0, stream_status = 0;
  std::function<void()> left;

 private:
  HttpRequest request_;
};

}  // namespace sluice::test
