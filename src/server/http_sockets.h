#pragma once
#include <memory>
#include <string>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ssl/context.hpp>

#include "server/http_loop.h"
#include "server/http_transport.h"

namespace sluice {

/// TLS 1.2 and later with the certificate and key of two PEM files. Throws LoadError naming the file.
std::unique_ptr<boost::asio::ssl::context> load_tls(const std::string& certfile, const std::string& keyfile);

/// Without a TLS context the transport is plain. The loop and the context must outlive it.
std::unique_ptr<HttpTransport> make_transport(boost::asio::ip::tcp::socket socket, HttpLoop& loop,
                                              boost::asio::ssl::context* tls);

}  // namespace sluice
