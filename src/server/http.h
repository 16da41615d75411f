#pragma once
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice {

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

/// One request, read whole. Header names are lower case.
struct HttpRequest {
  std::string method;  // "GET"
  std::string path;    // percent-decoded, without the query
  std::string query;   // as it came, without the question mark
  HttpHeaders headers;
  std::string body;
  std::string id;    // X-Request-Id of the client, if it is sound, else one of our own; echoed in the reply
  std::string peer;  // "127.0.0.1:50312"

  /// Value of the first header of this (lower case) name; empty if there is none.
  std::string_view header(std::string_view name) const;
};

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::string body;
  HttpHeaders headers;
};

/// One request and the way to answer it: either send(), or start_stream(), write() any number of times and
/// end_stream(). All members belong to the server's event thread; use HttpServer::post from elsewhere. An exchange that
/// is dropped without an answer answers 500.
class HttpExchange {
 public:
  virtual ~HttpExchange() = default;
  virtual const HttpRequest& request() const = 0;
  /// Frees the memory of the body once it has been read.
  virtual std::string take_body() = 0;

  /// A header of the answer, whichever it will be; before send() or start_stream().
  virtual void add_header(std::string name, std::string value) = 0;
  virtual void send(HttpResponse response) = 0;
  /// Chunked transfer; headers go out with the first write.
  virtual void start_stream(int status, std::string_view content_type, HttpHeaders headers) = 0;
  /// Queues bytes. A client that reads so slowly that more than HttpOptions::max_unsent_bytes wait is disconnected.
  virtual void write(std::string_view bytes) = 0;
  virtual void end_stream() = 0;

  /// The client went away, or was disconnected. Writes are then ignored.
  virtual bool closed() const = 0;
  /// Called once, on the event thread, if the client goes away before the answer is complete.
  virtual void on_close(std::function<void()> callback) = 0;
  /// The connection closes after this answer ("Connection: close").
  virtual void close_after() = 0;
};

using HttpHandler = std::function<void(std::shared_ptr<HttpExchange>)>;

struct HttpOptions {
  std::string host = "127.0.0.1";
  std::uint16_t port = 8000;                 // 0: any free one
  std::string ssl_certfile, ssl_keyfile;     // PEM; both empty: no TLS
  std::size_t max_body_bytes = 64u << 20;    // more is a 413
  std::size_t max_bodies_bytes = 1u << 30;   // of all bodies being read or waiting for the handler; more is a 503
  std::size_t max_header_bytes = 64u << 10;  // more is a 431
  std::size_t max_connections = 4096;        // further ones get a 503 and are closed
  std::size_t max_unsent_bytes = 4u << 20;   // of one connection
  std::chrono::milliseconds header_timeout{10'000};  // from the first byte (or the connect) to the end of the headers
  std::chrono::milliseconds body_timeout{60'000};    // the whole body; a client slower than that gets a 408
  std::chrono::milliseconds idle_timeout{75'000};    // between two requests of a connection
  std::chrono::milliseconds write_timeout{60'000};   // without any byte accepted by the client
};

/// Counters and gauges of connections.
struct HttpStats {
  std::size_t connections = 0;  // open now
  std::size_t exchanges = 0;    // being answered now
  std::uint64_t accepted = 0, refused = 0, requests = 0;
};

/// HTTP/1.1 with keep-alive, chunked bodies, "Expect: 100-continue", TLS. One event thread does all of it: the handler
/// and everything that is posted run there and must not block.
class HttpServer {
 public:
  /// Binds and listens. Throws LoadError: the port is taken, the address is no address, a certificate does not load.
  HttpServer(HttpOptions options, HttpHandler handler);
  /// stop(), if that was not called.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  /// The port that it listens on.
  std::uint16_t port() const;
  /// Starts the event thread.
  void start();
  /// Runs a task on the event thread; from any thread. Tasks left when the server stops are destroyed without being
  /// run.
  void post(std::function<void()> task);
  /// The same, after a delay.
  void post_after(std::chrono::milliseconds delay, std::function<void()> task);
  /// Idle connections are closed and every answer from now on closes its connection; new connections are still
  /// accepted, so that they can be told.
  void begin_drain();
  /// Closes every connection, waits for the event thread. Idempotent; not from the event thread.
  void stop();
  /// From any thread.
  HttpStats stats() const;

 private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace sluice
