#include "apps/bench_client.h"

#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/ssl/host_name_verification.hpp>
#include <boost/asio/write.hpp>

#include "base/check.h"
#include "base/error.h"

namespace sluice {

namespace asio = boost::asio;
using asio::ip::tcp;

ClientContext::ClientContext(ServerUrl server, bool verify_certificates)
    : url(std::move(server)), io(1), tls(asio::ssl::context::tls_client) {
  boost::system::error_code error;
  addresses = tcp::resolver(io).resolve(url.host, url.port, error);
  if (error) fail<RequestError>("{}: the host is not known: {}", url.text(), error.message());
  if (!url.tls) return;
  tls.set_default_verify_paths(error);
  tls.set_verify_mode(verify_certificates ? asio::ssl::verify_peer : asio::ssl::verify_none);
  if (verify_certificates) tls.set_verify_callback(asio::ssl::host_name_verification(url.host));
}

ClientConnection::Wire::Wire(ClientContext& context) : socket(context.io) {
  if (context.url.tls) tls.emplace(socket, context.tls);
}

ClientConnection::ClientConnection(ClientContext& context) : context_(context) {}

void ClientConnection::exchange(std::string request, OnBody on_body, OnEnd on_end) {
  CHECK(!on_end_);
  request_ = std::move(request);
  on_body_ = std::move(on_body);
  on_end_ = std::move(on_end);
  response_ = ResponseReader();
  reused_ = open_;
  open_ ? send() : connect();
}

void ClientConnection::abort(const std::string& error) {
  if (!on_end_) return;
  close();
  end(error);
}

void ClientConnection::close() {
  open_ = false;
  Error ignored;
  if (wire_) wire_->socket.close(ignored);
  wire_.reset();
}

void ClientConnection::end(const std::string& error) {
  on_body_ = nullptr;
  const OnEnd on_end = std::exchange(on_end_, nullptr);
  on_end(error);
}

void ClientConnection::broken(const Error& error, std::string_view doing) {
  const bool stale = reused_ && !response_.started();
  close();
  if (stale) {
    reused_ = false;
    connect();
    return;
  }
  end(fmt::format("{}: {}: {}", context_.url.text(), doing, error.message()));
}

// Each completion holds its wire; one of a wire that was closed meanwhile is ignored.

void ClientConnection::connect() {
  wire_ = std::make_shared<Wire>(context_);
  asio::async_connect(wire_->socket, context_.addresses,
                      [self = shared_from_this(), wire = wire_](const Error& error, const tcp::endpoint&) {
                        if (self->wire_ != wire) return;
                        error ? self->broken(error, "cannot connect") : self->on_connect();
                      });
}

void ClientConnection::on_connect() {
  Error ignored;
  wire_->socket.set_option(tcp::no_delay(true), ignored);
  open_ = true;
  if (!wire_->tls) {
    send();
    return;
  }
  SSL_set_tlsext_host_name(wire_->tls->native_handle(), context_.url.host.c_str());
  wire_->tls->async_handshake(asio::ssl::stream_base::client,
                              [self = shared_from_this(), wire = wire_](const Error& error) {
                                if (self->wire_ != wire) return;
                                error ? self->broken(error, "no TLS connection") : self->send();
                              });
}

void ClientConnection::send() {
  // Whether it could be sent or not: a server may answer, and close, before it has read all of a request.
  auto sent = [self = shared_from_this(), wire = wire_](const Error&, std::size_t) {
    if (self->wire_ == wire) self->receive();
  };
  const auto bytes = asio::buffer(request_);
  wire_->tls ? asio::async_write(*wire_->tls, bytes, std::move(sent))
             : asio::async_write(wire_->socket, bytes, std::move(sent));
}

void ClientConnection::receive() {
  auto received = [self = shared_from_this(), wire = wire_](const Error& error, std::size_t count) {
    if (self->wire_ == wire) self->on_received(error, count);
  };
  wire_->tls ? wire_->tls->async_read_some(asio::buffer(buffer_), std::move(received))
             : wire_->socket.async_read_some(asio::buffer(buffer_), std::move(received));
}

void ClientConnection::on_received(const Error& error, std::size_t count) {
  try {
    if (count > 0) {
      take(std::string_view(buffer_.data(), count));
    } else if (response_.started() && (error == asio::error::eof || error == asio::ssl::error::stream_truncated)) {
      response_.end_of_connection();
    } else if (error) {
      broken(error, "the connection broke");
      return;
    }
  } catch (const RequestError& problem) {
    if (on_end_) abort(fmt::format("{}: {}", context_.url.text(), problem.what()));
    return;
  }
  if (!on_end_) return;
  if (!response_.complete()) {
    receive();
    return;
  }
  if (error || !response_.keeps_connection()) close();
  end({});
}

void ClientConnection::take(std::string_view bytes) {
  piece_.clear();
  const std::size_t taken = response_.read(bytes, piece_);
  if (!piece_.empty()) on_body_(piece_);
  if (taken < bytes.size()) fail<RequestError>("{} bytes follow the response", bytes.size() - taken);
}

}  // namespace sluice
