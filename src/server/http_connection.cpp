#include "server/http_connection.h"

#include <exception>
#include <utility>

#include "base/log.h"
#include "server/http_format.h"
#include "server/http_loop.h"
#include "server/http_responder.h"

namespace sluice {

namespace {

using namespace std::chrono_literals;

// How long a client may take to close its side after an answer that ends the connection. Closing at once would reset
// the connection under clients that still send, and they would lose the answer.
constexpr std::chrono::milliseconds linger_timeout = 2s;
// Reading stops while this much waits for the next request.
constexpr std::size_t max_kept_bytes = 16u << 10;
// Buffers that grew beyond this are given back when they are empty.
constexpr std::size_t max_idle_capacity = 16u << 10;

void clear(std::string& buffer) {
  buffer.clear();
  if (buffer.capacity() > max_idle_capacity) buffer = {};
}

}  // namespace

HttpConnection::HttpConnection(std::shared_ptr<HttpShared> shared, std::unique_ptr<HttpTransport> transport,
                               std::string peer, bool turn_away)
    : shared_(std::move(shared)), transport_(std::move(transport)), peer_(std::move(peer)), turn_away_(turn_away) {
  shared_->with_socket.insert(this);
}

HttpConnection::~HttpConnection() {
  if (transport_) shared_->with_socket.erase(this);
}

void HttpConnection::open() {
  shared_->connections.emplace(this, shared_from_this());
  if (turn_away_) {
    ++shared_->turned_away;
    start_timer(linger_timeout);
  } else {
    ++shared_->admitted;
    start_timer(shared_->options.header_timeout);
  }
  transport_->open(shared_from_this());
}

void HttpConnection::close() {
  if (closed()) return;
  const auto self = shared_from_this();
  if (phase_ == Phase::answering) --shared_->exchanges;
  phase_ = Phase::closed;
  transport_->close();
  if (responder_ != nullptr) std::exchange(responder_, nullptr)->client_gone();
  release_body(std::exchange(body_bytes_, 0));
  parser_.reset();
  kept_ = {};
  output_ = {};
  if (turn_away_) --shared_->turned_away;
  if (!turn_away_) --shared_->admitted;
  shared_->connections.erase(this);
}

void HttpConnection::on_open() {
  if (closed()) return;
  phase_ = Phase::head;
  if (turn_away_) return refuse(503, "this server has as many connections as it takes; try again later");
  read();
}

void HttpConnection::read() {
  if (reading_ || closed() || kept_.size() >= max_kept_bytes) return;
  reading_ = true;
  transport_->read(shared_from_this());
}

void HttpConnection::on_read(std::string_view bytes) {
  if (closed()) return;
  reading_ = false;
  if (phase_ == Phase::answering || !kept_.empty()) {
    kept_ += bytes;
    take_kept();
  } else if (phase_ != Phase::lingering) {
    take(bytes);
  }
  read();
}

void HttpConnection::take_kept() {
  if (phase_ != Phase::head || kept_.empty()) return;
  const std::string bytes = std::exchange(kept_, {});
  take(bytes);
  read();
}

void HttpConnection::take(std::string_view bytes) {
  const HttpOptions& options = shared_->options;
  if (!parser_) parser_ = std::make_unique<HttpParser>(options.max_header_bytes, options.max_body_bytes);
  const bool begins = !parser_->started();
  parser_->feed(bytes);
  if (!parser_->started()) return parser_.reset();
  if (begins && reused_) start_timer(options.header_timeout);
  const std::size_t body_bytes = parser_->body_bytes();
  shared_->body_bytes += body_bytes - body_bytes_;
  body_bytes_ = body_bytes;
  if (parser_->state() == HttpParser::State::failed) {
    const HttpFault fault = parser_->fault();
    return refuse(fault.status, fault.message);
  }
  if (shared_->body_bytes > options.max_bodies_bytes) {
    return refuse(503, "this server holds as many bytes of requests as it takes; try again later");
  }
  if (parser_->state() == HttpParser::State::complete) return begin_answer(bytes);
  if (parser_->state() == HttpParser::State::body && phase_ == Phase::head) begin_body();
}

void HttpConnection::begin_body() {
  phase_ = Phase::body;
  start_timer(shared_->options.body_timeout);
  if (!parser_->expects_continue() || body_bytes_ > 0) return;
  output_ += "HTTP/1.1 100 Continue\r\n\r\n";
  flush();
}

void HttpConnection::begin_answer(std::string_view rest) {
  phase_ = Phase::answering;
  stop_timer();
  complete_ = false;
  kept_ = rest;
  ++shared_->requests;
  ++shared_->exchanges;
  const std::shared_ptr<HttpExchange> exchange = make_exchange();
  HttpResponder* const responder = responder_;
  read();
  try {
    shared_->handler(exchange);
  } catch (const std::exception& error) {
    log_warning("request {}: the handler failed: {}", exchange->request().id, error.what());
    responder->give_up(500, "the server failed to answer this request");
  }
}

std::shared_ptr<HttpExchange> HttpConnection::make_exchange() {
  HttpRequest request = parser_->take();
  const bool keep_alive = parser_->keep_alive(), http_1_0 = parser_->http_1_0();
  parser_.reset();
  body_bytes_ = 0;  // the responder's now
  const std::string_view id = request.header("x-request-id");
  request.id = is_sound_id(id) ? std::string(id) : random_id();
  request.peer = peer_;
  auto responder = std::make_unique<HttpResponder>(shared_from_this(), std::move(request), keep_alive, http_1_0);
  responder_ = responder.get();
  // Whichever thread drops it, it ends on the event thread.
  return {responder.release(), [loop = shared_->loop](HttpResponder* last) {
            std::shared_ptr<HttpResponder> owned(last);
            if (!loop->on_thread()) loop->post([owned = std::move(owned)] {});
          }};
}

void HttpConnection::refuse(int status, const std::string& message) {
  const HttpResponse response = http_error(status, message);
  HttpHead head;
  head.status = status;
  head.content_type = response.content_type;
  head.headers = &response.headers;
  head.content_length = response.body.size();
  head.keep_alive = false;
  append_head(output_, head);
  output_ += response.body;
  phase_ = Phase::lingering;
  stop_timer();
  release_body(std::exchange(body_bytes_, 0));
  parser_.reset();
  flush();
}

void HttpConnection::flush() {
  if (writing_ || output_.empty() || closed()) return;
  const std::optional<std::size_t> written = transport_->write_now(output_);
  if (!written) return close();
  if (*written == output_.size()) {
    clear(output_);
    return sent_all();
  }
  in_flight_.swap(output_);
  sent_ = *written;
  write_deadline_ = HttpClock::now() + shared_->options.write_timeout;
  write_more();
}

void HttpConnection::write_more() {
  writing_ = true;
  transport_->write(shared_from_this(), std::string_view(in_flight_).substr(sent_));
}

void HttpConnection::on_written(std::size_t bytes) {
  if (closed()) return;
  writing_ = false;
  sent_ += bytes;
  write_deadline_ = HttpClock::now() + shared_->options.write_timeout;
  if (sent_ < in_flight_.size()) return write_more();
  clear(in_flight_);
  sent_ = 0;
  if (output_.empty()) return sent_all();
  flush();
}

void HttpConnection::sent_all() {
  if (phase_ == Phase::lingering && !finished_) return linger();
  if (phase_ == Phase::answering && complete_) next_request();
}

void HttpConnection::answer_complete(bool keep_alive) {
  complete_ = true;
  keep_alive_ = keep_alive;
  if (unsent_bytes() == 0) return sent_all();
  flush();
}

void HttpConnection::next_request() {
  --shared_->exchanges;
  responder_ = nullptr;
  reused_ = true;
  if (!keep_alive_ || shared_->draining) {
    phase_ = Phase::lingering;
    return linger();
  }
  phase_ = Phase::head;
  if (kept_.empty()) return start_timer(shared_->options.idle_timeout);
  start_timer(shared_->options.header_timeout);
  // Not at once: it may be the handler that calls.
  shared_->loop->post([self = shared_from_this()] { self->take_kept(); });
}

void HttpConnection::linger() {
  finished_ = true;
  kept_ = {};
  start_timer(linger_timeout);
  transport_->finish(shared_from_this());
  read();
}

void HttpConnection::check_deadlines(HttpClock::time_point now) {
  if (writing_ && now >= write_deadline_) return close();
  if (now < deadline_) return;
  const bool half_a_request = phase_ == Phase::body || (phase_ == Phase::head && parser_);
  if (!half_a_request) return close();
  refuse(408, "the request did not come in time");
}

void HttpConnection::close_if_idle() {
  if (phase_ == Phase::head && reused_ && !parser_ && kept_.empty()) close();
}

}  // namespace sluice
