#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/post.hpp>
#include <fmt/format.h>
#include <sys/resource.h>

#include "base/error.h"
#include "base/log.h"
#include "server/http.h"
#include "server/http_connection.h"
#include "server/http_loop.h"
#include "server/http_shared.h"
#include "server/http_sockets.h"

namespace sluice {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;
using namespace std::chrono_literals;

namespace {

constexpr std::chrono::milliseconds accept_pause = 50ms;  // when there are no descriptors left
constexpr std::size_t max_turned_away = 256;              // at once; clients beyond that are dropped without a word
constexpr std::size_t spare_descriptors = 512;            // for everything that is no connection
constexpr std::chrono::seconds keepalive_idle = 60s;

/// Raises the limit of open files as far as it goes. Returns how many connections of the wanted number fit into it.
std::size_t fit_connections(std::size_t wanted) {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return wanted;
  if (limit.rlim_cur < limit.rlim_max) {
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
    getrlimit(RLIMIT_NOFILE, &limit);
  }
  const std::size_t files = limit.rlim_cur;
  const std::size_t fitting = files > 2 * spare_descriptors ? files - spare_descriptors : files / 2;
  if (fitting < wanted) log_warning("{} open files allow for {} connections, not {}", files, fitting, wanted);
  return std::min(fitting, wanted);
}

HttpOptions checked(HttpOptions options) {
  options.max_connections = fit_connections(options.max_connections);
  return options;
}

/// How often deadlines are looked at.
std::chrono::milliseconds tick_of(const HttpOptions& options) {
  const auto shortest =
      std::min({options.header_timeout, options.body_timeout, options.idle_timeout, options.write_timeout});
  return std::clamp<std::chrono::milliseconds>(shortest / 8, 5ms, 250ms);
}

void set_socket_options(tcp::socket& socket, const HttpOptions& options) {
  error_code ignored;
  socket.non_blocking(true, ignored);
  socket.set_option(tcp::no_delay(true), ignored);
  // A client whose machine is gone never closes: the kernel finds out.
  socket.set_option(asio::socket_base::keep_alive(true), ignored);
  using KeepaliveIdle = asio::detail::socket_option::integer<IPPROTO_TCP, TCP_KEEPIDLE>;
  using UserTimeout = asio::detail::socket_option::integer<IPPROTO_TCP, TCP_USER_TIMEOUT>;
  socket.set_option(KeepaliveIdle(static_cast<int>(keepalive_idle.count())), ignored);
  const auto patience = std::clamp<std::chrono::milliseconds>(options.write_timeout, 30s, 1h);
  socket.set_option(UserTimeout(static_cast<int>(patience.count())), ignored);
}

std::string text_of(const tcp::endpoint& endpoint) {
  const std::string address = endpoint.address().to_string();
  return endpoint.address().is_v6() ? fmt::format("[{}]:{}", address, endpoint.port())
                                    : fmt::format("{}:{}", address, endpoint.port());
}

}  // namespace

std::string_view HttpRequest::header(std::string_view name) const {
  const auto found = std::ranges::find(headers, name, &std::pair<std::string, std::string>::first);
  return found == headers.end() ? std::string_view() : std::string_view(found->second);
}

struct HttpServer::Implementation {
  Implementation(HttpOptions options, HttpHandler handler);

  void listen();
  void start();
  void stop();
  void accept();
  void admit(tcp::socket socket);
  void tick();
  void drain();
  void close_all();
  std::vector<std::shared_ptr<HttpConnection>> connections() const;

  std::shared_ptr<HttpShared> shared;
  std::shared_ptr<HttpLoop> loop = std::make_shared<HttpLoop>();
  std::unique_ptr<asio::ssl::context> tls;  // null: plain
  std::optional<tcp::acceptor> acceptor;
  std::uint16_t port = 0;
  std::chrono::milliseconds interval;
  std::mutex stop_mutex;
  bool started = false, stopped = false;
};

HttpServer::Implementation::Implementation(HttpOptions options, HttpHandler handler)
    : shared(std::make_shared<HttpShared>(checked(std::move(options)), std::move(handler))),
      interval(tick_of(shared->options)) {
  shared->loop = loop;
  if (!shared->options.ssl_certfile.empty() || !shared->options.ssl_keyfile.empty()) {
    tls = load_tls(shared->options.ssl_certfile, shared->options.ssl_keyfile);
  }
  listen();
}

void HttpServer::Implementation::listen() {
  const HttpOptions& options = shared->options;
  error_code error;
  const auto found = tcp::resolver(loop->context())
                         .resolve(options.host, fmt::to_string(options.port),
                                  tcp::resolver::passive | tcp::resolver::numeric_service, error);
  if (error || found.empty()) {
    fail<LoadError>("cannot listen on \"{}\": expected an address or a name of this machine: {}", options.host,
                    error.message());
  }
  const tcp::endpoint endpoint = found.begin()->endpoint();
  acceptor.emplace(loop->context());
  acceptor->open(endpoint.protocol(), error);
  if (!error) acceptor->set_option(tcp::acceptor::reuse_address(true), error);
  if (!error && endpoint.address().is_v6()) {
    error_code ignored;  // "::" stands for every address of both families where the system can do that
    acceptor->set_option(asio::ip::v6_only(false), ignored);
  }
  if (!error) acceptor->bind(endpoint, error);
  if (!error) acceptor->listen(asio::socket_base::max_listen_connections, error);
  if (!error) acceptor->non_blocking(true, error);
  if (!error) port = acceptor->local_endpoint(error).port();
  if (error) {
    fail<LoadError>("cannot listen on {}: {}; choose another --host or --port (0 takes any free port)",
                    text_of(endpoint), error.message());
  }
}

void HttpServer::Implementation::start() {
  if (std::exchange(started, true)) return;
  loop->post([this] {
    accept();
    tick();
  });
  loop->start();
}

void HttpServer::Implementation::accept() {
  if (!acceptor->is_open()) return;
  acceptor->async_accept([this](const error_code& error, tcp::socket socket) {
    if (error == asio::error::operation_aborted) return;
    if (!error) {
      admit(std::move(socket));
      return accept();
    }
    if (error == asio::error::connection_aborted) return accept();
    loop->post_after(accept_pause, [this] { accept(); });
  });
}

void HttpServer::Implementation::admit(tcp::socket socket) {
  error_code error;
  const tcp::endpoint peer = socket.remote_endpoint(error);
  if (error) return;
  ++shared->accepted;
  const bool turn_away = shared->admitted >= shared->options.max_connections;
  if (turn_away) {
    ++shared->refused;
    if (shared->turned_away >= max_turned_away) return;
  }
  set_socket_options(socket, shared->options);
  std::make_shared<HttpConnection>(shared, make_transport(std::move(socket), *loop, tls.get()), text_of(peer),
                                   turn_away)
      ->open();
}

std::vector<std::shared_ptr<HttpConnection>> HttpServer::Implementation::connections() const {
  std::vector<std::shared_ptr<HttpConnection>> all;
  all.reserve(shared->connections.size());
  for (const auto& [key, connection] : shared->connections) all.push_back(connection);
  return all;
}

void HttpServer::Implementation::tick() {
  const HttpClock::time_point now = HttpClock::now();
  for (const auto& connection : connections()) connection->check_deadlines(now);
  loop->post_after(interval, [this] { tick(); });
}

void HttpServer::Implementation::drain() {
  shared->draining = true;
  for (const auto& connection : connections()) connection->close_if_idle();
}

void HttpServer::Implementation::close_all() {
  error_code ignored;
  acceptor->close(ignored);
  for (const auto& connection : connections()) connection->close();
}

void HttpServer::Implementation::stop() {
  const std::lock_guard lock(stop_mutex);
  if (std::exchange(stopped, true)) return;
  if (started) loop->join([this] { close_all(); });
  close_all();  // those that were accepted since
  for (HttpConnection* connection : std::exchange(shared->with_socket, {})) connection->abandon();
  acceptor.reset();
  loop->end();
}

HttpServer::HttpServer(HttpOptions options, HttpHandler handler)
    : implementation_(std::make_unique<Implementation>(std::move(options), std::move(handler))) {}

HttpServer::~HttpServer() { stop(); }

std::uint16_t HttpServer::port() const { return implementation_->port; }
void HttpServer::start() { implementation_->start(); }
void HttpServer::post(std::function<void()> task) { implementation_->loop->post(std::move(task)); }
void HttpServer::post_after(std::chrono::milliseconds delay, std::function<void()> task) {
  implementation_->loop->post_after(delay, std::move(task));
}
void HttpServer::begin_drain() {
  implementation_->loop->post([this] { implementation_->drain(); });
}
void HttpServer::stop() { implementation_->stop(); }

HttpStats HttpServer::stats() const {
  const HttpShared& shared = *implementation_->shared;
  return {.connections = shared.admitted,
          .exchanges = shared.exchanges,
          .accepted = shared.accepted,
          .refused = shared.refused,
          .requests = shared.requests};
}

}  // namespace sluice
