#include "server/http_sockets.h"

#include <array>
#include <cstring>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/ssl/stream.hpp>

#include "base/error.h"

namespace sluice {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

void close_socket(tcp::socket& socket) {
  error_code ignored;
  socket.close(ignored);
}

/// Idle connections hold no buffer: it waits for bytes, then reads them into the loop's.
class PlainTransport final : public HttpTransport {
 public:
  PlainTransport(tcp::socket socket, HttpLoop& loop) : socket_(std::move(socket)), loop_(loop) {}

  void open(Owner owner) override {
    asio::post(socket_.get_executor(), [owner = std::move(owner)] { owner->on_open(); });
  }

  void read(Owner owner) override {
    socket_.async_wait(tcp::socket::wait_read, [this, owner = std::move(owner)](const error_code& error) {
      if (error) return owner->on_end();
      error_code failure;
      const std::size_t bytes = socket_.read_some(asio::buffer(loop_.scratch), failure);
      if (failure == asio::error::would_block) return read(owner);
      if (failure) return owner->on_end();
      owner->on_read({loop_.scratch.data(), bytes});
    });
  }

  std::optional<std::size_t> write_now(std::string_view bytes) override {
    error_code failure;
    const std::size_t written = socket_.write_some(asio::const_buffer(bytes.data(), bytes.size()), failure);
    if (failure == asio::error::would_block) return 0;
    if (failure) return std::nullopt;
    return written;
  }

  void write(Owner owner, std::string_view bytes) override {
    socket_.async_write_some(asio::const_buffer(bytes.data(), bytes.size()),
                             [owner = std::move(owner)](const error_code& error, std::size_t written) {
                               if (error) return owner->on_end();
                               owner->on_written(written);
                             });
  }

  void finish(Owner) override {
    error_code ignored;
    socket_.shutdown(tcp::socket::shutdown_send, ignored);
  }

  void close() override { close_socket(socket_); }

 private:
  tcp::socket socket_;
  HttpLoop& loop_;
};

class TlsTransport final : public HttpTransport {
 public:
  TlsTransport(tcp::socket socket, asio::ssl::context& tls) : stream_(std::move(socket), tls) {}

  void open(Owner owner) override {
    stream_.async_handshake(asio::ssl::stream_base::server, [owner = std::move(owner)](const error_code& error) {
      if (error) return owner->on_end();
      owner->on_open();
    });
  }

  void read(Owner owner) override {
    stream_.async_read_some(asio::buffer(buffer_),
                            [this, owner = std::move(owner)](const error_code& error, std::size_t bytes) {
                              if (error) return owner->on_end();
                              owner->on_read({buffer_.data(), bytes});
                            });
  }

  /// A record that is written in part cannot be taken back: TLS always writes in the background.
  std::optional<std::size_t> write_now(std::string_view) override { return 0; }

  void write(Owner owner, std::string_view bytes) override {
    stream_.async_write_some(asio::const_buffer(bytes.data(), bytes.size()),
                             [owner = std::move(owner)](const error_code& error, std::size_t written) {
                               if (error) return owner->on_end();
                               owner->on_written(written);
                             });
  }

  void finish(Owner owner) override {
    stream_.async_shutdown([owner = std::move(owner)](const error_code&) {});
  }

  void close() override { close_socket(stream_.next_layer()); }

 private:
  asio::ssl::stream<tcp::socket> stream_;
  std::array<char, 16u << 10> buffer_;
};

/// Clients that offer HTTP/2 as well are told to speak HTTP/1.1.
int select_protocol(SSL*, const unsigned char** chosen, unsigned char* chosen_bytes, const unsigned char* offered,
                    unsigned int offered_bytes, void*) {
  constexpr std::string_view wanted = "http/1.1";
  for (unsigned int at = 0; at < offered_bytes; at += 1u + offered[at]) {
    const unsigned int length = offered[at];
    if (at + 1 + length > offered_bytes) break;
    if (length == wanted.size() && std::memcmp(offered + at + 1, wanted.data(), length) == 0) {
      *chosen = offered + at + 1;
      *chosen_bytes = offered[at];
      return SSL_TLSEXT_ERR_OK;
    }
  }
  return SSL_TLSEXT_ERR_NOACK;
}

}  // namespace

std::unique_ptr<asio::ssl::context> load_tls(const std::string& certfile, const std::string& keyfile) {
  if (certfile.empty() || keyfile.empty()) {
    fail<LoadError>("TLS needs both a certificate and a key; {} is missing",
                    certfile.empty() ? "the certificate file" : "the key file");
  }
  auto tls = std::make_unique<asio::ssl::context>(asio::ssl::context::tls_server);
  error_code error;
  tls->use_certificate_chain_file(certfile, error);
  if (error) {
    fail<LoadError>("{}: expected a certificate in PEM (the chain, the server's own first): {}", certfile,
                    error.message());
  }
  tls->use_private_key_file(keyfile, asio::ssl::context::pem, error);
  if (error) fail<LoadError>("{}: expected the private key of {} in PEM: {}", keyfile, certfile, error.message());
  SSL_CTX* const native = tls->native_handle();
  SSL_CTX_set_min_proto_version(native, TLS1_2_VERSION);
  SSL_CTX_set_options(native, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_CIPHER_SERVER_PREFERENCE);
  SSL_CTX_set_mode(native, SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_alpn_select_cb(native, select_protocol, nullptr);
  return tls;
}

std::unique_ptr<HttpTransport> make_transport(tcp::socket socket, HttpLoop& loop, asio::ssl::context* tls) {
  if (tls != nullptr) return std::make_unique<TlsTransport>(std::move(socket), *tls);
  return std::make_unique<PlainTransport>(std::move(socket), loop);
}

}  // namespace sluice
