#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include "base/error.h"
#include "server/echo_server.h"
#include "support/temporary_directory.h"

namespace sluice {

using test::EchoServer;
using test::eventually;
using test::RawClient;
using test::request_text;

namespace {

template <class Type, void (*free_it)(Type*)>
struct Freed {
  void operator()(Type* pointer) const { free_it(pointer); }
};
template <class Type, void (*free_it)(Type*)>
using Owned = std::unique_ptr<Type, Freed<Type, free_it>>;

/// A key and a certificate that it signs itself, in two PEM files.
class Certificate {
 public:
  Certificate() {
    const Owned<EVP_PKEY, EVP_PKEY_free> key(EVP_EC_gen("P-256"));
    const Owned<X509, X509_free> certificate(X509_new());
    X509_set_version(certificate.get(), 2);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), 1);
    X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -3600);
    X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 3600);
    X509_set_pubkey(certificate.get(), key.get());
    X509_NAME* const name = X509_get_subject_name(certificate.get());
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>("localhost"), -1, -1,
                               0);
    X509_set_issuer_name(certificate.get(), name);
    X509_sign(certificate.get(), key.get(), EVP_sha256());
    const auto key_out = open(key_file());
    PEM_write_PrivateKey(key_out.get(), key.get(), nullptr, nullptr, 0, nullptr, nullptr);
    const auto certificate_out = open(certificate_file());
    PEM_write_X509(certificate_out.get(), certificate.get());
  }

  std::string certificate_file() const { return (directory_.path() / "cert.pem").string(); }
  std::string key_file() const { return (directory_.path() / "key.pem").string(); }
  HttpOptions options() const {
    HttpOptions options;
    options.ssl_certfile = certificate_file();
    options.ssl_keyfile = key_file();
    return options;
  }

 private:
  struct Closed {
    void operator()(FILE* file) const { std::fclose(file); }
  };
  static std::unique_ptr<FILE, Closed> open(const std::string& path) {
    return std::unique_ptr<FILE, Closed>(std::fopen(path.c_str(), "w"));
  }
  test::TemporaryDirectory directory_;
};

class TlsClient {
 public:
  explicit TlsClient(std::uint16_t port, int highest_version = 0)
      : raw_(port), context_(SSL_CTX_new(TLS_client_method())) {
    const timeval patience{.tv_sec = 10, .tv_usec = 0};
    setsockopt(raw_.descriptor(), SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    SSL_CTX_set_max_proto_version(context_.get(), highest_version);
    SSL_CTX_set_security_level(context_.get(), 0);
    session_.reset(SSL_new(context_.get()));
    const std::string protocols("\x02h2\x08http/1.1");
    SSL_set_alpn_protos(session_.get(), reinterpret_cast<const unsigned char*>(protocols.data()),
                        static_cast<unsigned>(protocols.size()));
    SSL_set_fd(session_.get(), raw_.descriptor());
    shaken_ = SSL_connect(session_.get()) == 1;
  }

  bool shaken() const { return shaken_; }
  std::string version() const { return SSL_get_version(session_.get()); }
  std::string protocol() const {
    const unsigned char* name = nullptr;
    unsigned length = 0;
    SSL_get0_alpn_selected(session_.get(), &name, &length);
    return {reinterpret_cast<const char*>(name), length};
  }
  bool send(const std::string& bytes) {
    return SSL_write(session_.get(), bytes.data(), static_cast<int>(bytes.size())) == static_cast<int>(bytes.size());
  }
  std::string read_until(const std::string& end) {
    while (received_.find(end) == std::string::npos && receive()) {
    }
    return std::exchange(received_, {});
  }
  std::string read_to_end() {
    while (receive()) {
    }
    return std::exchange(received_, {});
  }
  /// The server has said that it sends nothing more.
  bool ended_properly() const { return (SSL_get_shutdown(session_.get()) & SSL_RECEIVED_SHUTDOWN) != 0; }
  RawClient& raw() { return raw_; }

 private:
  bool receive() {
    char buffer[16 << 10];
    const int count = SSL_read(session_.get(), buffer, sizeof buffer);
    if (count > 0) received_.append(buffer, static_cast<std::size_t>(count));
    return count > 0;
  }

  RawClient raw_;
  Owned<SSL_CTX, SSL_CTX_free> context_;
  Owned<SSL, SSL_free> session_;
  std::string received_;
  bool shaken_ = false;
};

}  // namespace

TEST(HttpTls, AnswersAndKeepsTheConnection) {
  const Certificate certificate;
  EchoServer server(certificate.options());
  TlsClient client(server.port());
  ASSERT_TRUE(client.shaken());
  EXPECT_EQ(client.protocol(), "http/1.1");
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(client.send(request_text("POST", "/echo", "", "body")));
    EXPECT_TRUE(client.read_until("\nbody").ends_with("\r\n\r\nPOST /echo ? 4\nbody"));
  }
}

TEST(HttpTls, EndsWithACloseNotify) {
  const Certificate certificate;
  EchoServer server(certificate.options());
  TlsClient client(server.port());
  client.send("GET /stream HTTP/1.0\r\n\r\n");
  EXPECT_TRUE(client.read_to_end().ends_with("\r\n\r\none two three"));
  EXPECT_TRUE(client.ended_properly());
}

TEST(HttpTls, LargeBodiesArriveWholeInBothDirections) {
  const Certificate certificate;
  EchoServer server(certificate.options());
  TlsClient client(server.port());
  std::string body;
  for (int i = 0; body.size() < 3'000'000; ++i) body += fmt::format("{},", i);
  client.send(request_text("POST", "/echo", "Connection: close\r\n", body));
  EXPECT_TRUE(client.read_to_end().ends_with(body));
}

TEST(HttpTls, SmallWritesToAClientThatReadsLateArriveInOrder) {
  const Certificate certificate;
  EchoServer server(certificate.options());
  TlsClient client(server.port());
  client.send("GET /open HTTP/1.0\r\n\r\n");
  ASSERT_TRUE(eventually([&] { return server.held_count == 1; }));
  std::string expected = "one ";
  server.run([&] {
    for (int i = 0; i < 100'000; ++i) {
      const std::string piece = fmt::format("{},", i);
      expected += piece;
      server.held[0]->write(piece);
    }
    server.held[0]->end_stream();
  });
  const std::string answer = client.read_to_end();
  EXPECT_TRUE(answer.substr(answer.find("\r\n\r\n") + 4) == expected);
}

TEST(HttpTls, TheHandlerHearsThatAClientVanished) {
  const Certificate certificate;
  EchoServer server(certificate.options());
  TlsClient client(server.port());
  client.send(request_text("GET", "/open"));
  ASSERT_TRUE(eventually([&] { return server.held_count == 1; }));
  client.raw().vanish();
  EXPECT_TRUE(eventually([&] { return server.left == 1 && server.all_quiet(); }));
}

TEST(HttpTls, StopsInTheMiddleOfStreamsAndHandshakes) {
  const Certificate certificate;
  EchoServer server(certificate.options());
  RawClient half(server.port());
  half.send("\x16\x03\x01");
  TlsClient client(server.port());
  client.send(request_text("GET", "/open"));
  ASSERT_TRUE(eventually([&] { return server.held_count == 1; }));
  server.run([&] { server.held[0]->write(std::string(8u << 20, 'x')); });
  server->stop();
  EXPECT_EQ(server.left, 1);
  EXPECT_TRUE(server.all_quiet());
}

TEST(HttpTls, AHandshakeThatTakesTooLongIsCut) {
  const Certificate certificate;
  HttpOptions options = certificate.options();
  options.header_timeout = std::chrono::milliseconds(100);
  EchoServer server(options);
  RawClient client(server.port());
  client.send("\x16\x03\x01");
  EXPECT_TRUE(client.ended());
  EXPECT_TRUE(eventually([&] { return server.all_quiet(); }));
}

TEST(HttpTls, PlainTextIsCut) {
  const Certificate certificate;
  EchoServer server(certificate.options());
  RawClient client(server.port());
  client.send(request_text("GET", "/echo"));
  client.read_to_end();
  EXPECT_TRUE(eventually([&] { return server.all_quiet(); }));
  EXPECT_EQ(server->stats().requests, 0u);
}

TEST(HttpTls, OldVersionsAreRefused) {
  const Certificate certificate;
  EchoServer server(certificate.options());
  EXPECT_FALSE(TlsClient(server.port(), TLS1_1_VERSION).shaken());
  TlsClient client(server.port(), TLS1_2_VERSION);
  EXPECT_TRUE(client.shaken());
  EXPECT_EQ(client.version(), "TLSv1.2");
}

TEST(HttpTls, FilesThatDoNotServeAreLoadErrorsThatNameThem) {
  const Certificate certificate, other;
  auto message_of = [](const HttpOptions& options) -> std::string {
    try {
      const HttpServer server(options, [](auto) {});
    } catch (const LoadError& error) {
      return error.what();
    }
    return "";
  };
  HttpOptions options = certificate.options();
  options.port = 0;
  EXPECT_EQ(message_of(options), "");
  HttpOptions missing = options;
  missing.ssl_certfile = "/nonexistent/cert.pem";
  EXPECT_NE(message_of(missing).find("/nonexistent/cert.pem"), std::string::npos);
  HttpOptions foreign = options;
  foreign.ssl_keyfile = other.key_file();
  EXPECT_NE(message_of(foreign).find(other.key_file()), std::string::npos);
  HttpOptions alone = options;
  alone.ssl_keyfile.clear();
  EXPECT_NE(message_of(alone).find("key file"), std::string::npos);
}

}  // namespace sluice
