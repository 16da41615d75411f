#include "server/http_responder.h"

#include <exception>
#include <iterator>
#include <utility>

#include "base/check.h"
#include "base/log.h"
#include "server/http_connection.h"
#include "server/http_format.h"
#include "server/http_loop.h"

namespace sluice {

HttpResponder::HttpResponder(std::shared_ptr<HttpConnection> connection, HttpRequest request, bool keep_alive,
                             bool http_1_0)
    : connection_(std::move(connection)),
      request_(std::move(request)),
      body_bytes_(request_.body.size()),
      http_1_0_(http_1_0),
      is_head_(request_.method == "HEAD"),
      keep_alive_(keep_alive) {}

HttpResponder::~HttpResponder() {
  release_body();
  try {
    if (state_ == State::unanswered || state_ == State::streaming) give_up(500, "the server gave no answer");
  } catch (const std::exception& error) {
    log_warning("an answer failed: {}", error.what());
  }
  connection_->forget_responder(*this);
}

std::string HttpResponder::take_body() {
  release_body();
  return std::exchange(request_.body, {});
}

void HttpResponder::release_body() { connection_->release_body(std::exchange(body_bytes_, 0)); }

bool HttpResponder::keeps_connection() const { return keep_alive_ && !connection_->shared().draining; }

void HttpResponder::send(HttpResponse response) {
  if (state_ == State::closed) return;
  CHECK(state_ == State::unanswered, "an exchange is answered once");
  kept_ = keeps_connection();
  response.headers.insert(response.headers.end(), std::make_move_iterator(headers_.begin()),
                          std::make_move_iterator(headers_.end()));
  HttpHead head;
  head.status = response.status;
  head.headers = &response.headers;
  head.id = request_.id;
  head.keep_alive = kept_;
  head.http_1_0 = http_1_0_;
  const bool has_body = status_has_body(response.status);
  if (has_body) {
    head.content_type = response.content_type;
    head.content_length = response.body.size();
  }
  append_head(connection_->output(), head);
  if (has_body && !is_head_) connection_->output() += response.body;
  complete();
}

void HttpResponder::start_stream(int status, std::string_view content_type, HttpHeaders headers) {
  if (state_ == State::closed) return;
  CHECK(state_ == State::unanswered, "an exchange is answered once");
  state_ = State::streaming;
  status_ = status;
  content_type_ = content_type;
  headers_.insert(headers_.end(), std::make_move_iterator(headers.begin()), std::make_move_iterator(headers.end()));
  has_body_ = status_has_body(status) && !is_head_;
}

void HttpResponder::append_head_once() {
  if (head_sent_) return;
  head_sent_ = true;
  // Without chunks the end of the connection is the end of the body.
  kept_ = keeps_connection() && (!http_1_0_ || !has_body_);
  HttpHead head;
  head.status = status_;
  head.content_type = content_type_;
  head.headers = &headers_;
  head.id = request_.id;
  head.chunked = !http_1_0_ && status_has_body(status_);
  head.keep_alive = kept_;
  head.http_1_0 = http_1_0_;
  append_head(connection_->output(), head);
  headers_ = {};
}

void HttpResponder::write(std::string_view bytes) {
  if (state_ == State::closed) return;
  CHECK(state_ == State::streaming, "write() comes between start_stream() and end_stream()");
  const std::size_t unsent = connection_->unsent_bytes();
  if (unsent > 0 && unsent + bytes.size() > connection_->shared().options.max_unsent_bytes) {
    return connection_->close();
  }
  append_head_once();
  if (has_body_ && !http_1_0_) append_chunk(connection_->output(), bytes);
  if (has_body_ && http_1_0_) connection_->output() += bytes;
  connection_->flush();
}

void HttpResponder::end_stream() {
  if (state_ == State::closed) return;
  CHECK(state_ == State::streaming, "end_stream() comes once, after start_stream()");
  append_head_once();
  if (has_body_ && !http_1_0_) connection_->output() += last_chunk;
  complete();
}

void HttpResponder::complete() {
  state_ = State::answered;
  // The callback may hold the exchange itself; it goes last.
  const std::function<void()> dropped = std::exchange(on_close_, nullptr);
  connection_->answer_complete(kept_);
}

void HttpResponder::on_close(std::function<void()> callback) {
  if (state_ == State::closed) return connection_->shared().loop->post(std::move(callback));
  if (state_ != State::answered) on_close_ = std::move(callback);
}

void HttpResponder::client_gone() {
  if (state_ == State::answered) return;
  state_ = State::closed;
  if (on_close_) connection_->shared().loop->post(std::exchange(on_close_, nullptr));
}

void HttpResponder::give_up(int status, const std::string& message) {
  if (state_ == State::streaming && head_sent_) return connection_->close();
  state_ = state_ == State::streaming ? State::unanswered : state_;
  if (state_ == State::unanswered) send(http_error(status, message));
}

}  // namespace sluice
