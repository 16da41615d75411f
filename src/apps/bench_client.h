#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>

#include "apps/bench_stream.h"
#include "apps/server_url.h"

namespace sluice {

/// What the connections to one server share. All of it belongs to the thread that runs `io`.
struct ClientContext {
  /// Finds the addresses of the server. Throws RequestError: the name is unknown.
  ClientContext(ServerUrl url, bool verify_certificates);

  ServerUrl url;
  boost::asio::io_context io;
  boost::asio::ssl::context tls;
  boost::asio::ip::tcp::resolver::results_type addresses;
};

/// One connection, kept open from request to request, of which there is one at a time.
class ClientConnection : public std::enable_shared_from_this<ClientConnection> {
 public:
  using OnBody = std::function<void(std::string_view)>;
  /// `error` is empty when the response is complete.
  using OnEnd = std::function<void(const std::string& error)>;

  explicit ClientConnection(ClientContext& context);

  /// Sends a whole HTTP request, connecting first where needed. The body of the response goes to on_body piece by
  /// piece; on_end is called once, and may start the next exchange. A connection that the server closed since the last
  /// exchange is opened again.
  void exchange(std::string request, OnBody on_body, OnEnd on_end);
  /// Of the response, from the first piece of the body on.
  int status() const { return response_.status(); }
  /// Ends a running exchange with this error. Does nothing when none is running.
  void abort(const std::string& error);

 private:
  using Error = boost::system::error_code;
  /// Lives as long as an operation on it is pending.
  struct Wire {
    explicit Wire(ClientContext& context);
    boost::asio::ip::tcp::socket socket;
    std::optional<boost::asio::ssl::stream<boost::asio::ip::tcp::socket&>> tls;  // absent: plain HTTP
  };
  void connect();
  void send();
  void receive();
  void on_connect();
  void on_received(const Error& error, std::size_t count);
  void take(std::string_view bytes);
  void end(const std::string& error);
  void broken(const Error& error, std::string_view doing);
  void close();

  ClientContext& context_;
  std::shared_ptr<Wire> wire_;
  std::array<char, 16384> buffer_;
  std::string request_, piece_;
  ResponseReader response_;
  OnBody on_body_;
  OnEnd on_end_;
  bool open_ = false, reused_ = false;
};

}  // namespace sluice
