#pragma once
#include <atomic>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "server/http.h"
#include "server/raw_client.h"

namespace sluice::test {

/// A server whose handler does what the path says:
///   /echo       200 with what it was asked, as text: method, path, query, length of the body, the body
///   /stream     three chunks
///   /hold       keeps the exchange in `held` and a callback for the client that leaves
///   /open       begins a stream and keeps the exchange likewise
///   /throw, /drop, /drop-stream, /throw-stream, /close, /none (204)
class EchoServer {
 public:
  explicit EchoServer(HttpOptions options = {})
      : server_(with_free_port(std::move(options)), [this](auto exchange) { handle(std::move(exchange)); }) {
    server_.start();
  }

  HttpServer& operator*() { return server_; }
  HttpServer* operator->() { return &server_; }
  std::uint16_t port() const { return server_.port(); }
  RawClient client() const { return RawClient(port()); }

  /// Runs a task on the event thread and waits for it.
  template <class Task>
  void run(Task task) {
    auto done = std::make_shared<std::atomic<bool>>(false);
    server_.post([task, done] {
      task();
      *done = true;
    });
    ASSERT_TRUE(eventually([&] { return done->load(); }));
  }
  bool all_quiet() const {
    const HttpStats stats = server_.stats();
    return stats.connections == 0 && stats.exchanges == 0;
  }

  std::vector<std::shared_ptr<HttpExchange>> held;  // of the event thread
  std::atomic<int> held_count{0}, left{0};

 private:
  static HttpOptions with_free_port(HttpOptions options) {
    options.port = 0;
    return options;
  }

  static std::string describe(HttpExchange& exchange) {
    const HttpRequest& request = exchange.request();
    std::string text = fmt::format("{} {} ?{} {}\n", request.method, request.path, request.query, request.body.size());
    return text + exchange.take_body();
  }

  void hold(const std::shared_ptr<HttpExchange>& exchange) {
    exchange->on_close([this] { ++left; });
    held.push_back(exchange);
    ++held_count;
  }

  void handle(const std::shared_ptr<HttpExchange>& exchange) {
    const std::string& path = exchange->request().path;
    const std::string text = "text/plain";
    if (path == "/drop") return;
    if (path == "/throw") throw std::runtime_error("as it was asked to");
    if (path == "/hold") return hold(exchange);
    if (path == "/close") exchange->close_after();
    if (path == "/none") return exchange->send({.status = 204, .content_type = text, .body = "", .headers = {}});
    if (path == "/open" || path.ends_with("stream")) {
      exchange->start_stream(200, text, {{"X-Kind", "stream"}});
      exchange->write("one ");
      if (path == "/open") return hold(exchange);
      if (path == "/drop-stream") return;
      if (path == "/throw-stream") throw std::runtime_error("as it was asked to");
      exchange->write("");
      exchange->write("two ");
      exchange->write("three");
      return exchange->end_stream();
    }
    exchange->send({.status = 200, .content_type = text, .body = describe(*exchange), .headers = {{"X-Kind", "echo"}}});
  }

  HttpServer server_;  // last: its thread ends before the rest
};

}  // namespace sluice::test
