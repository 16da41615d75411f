#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "server/http_parser.h"
#include "server/http_shared.h"
#include "server/http_transport.h"

namespace sluice {

class HttpResponder;

/// One client: reads a request, has it answered, reads the next. Belongs to the event thread. While an answer is
/// produced it goes on reading, to see the client leave; what comes is kept for the next request.
class HttpConnection final : public TransportEvents, public std::enable_shared_from_this<HttpConnection> {
 public:
  /// turn_away: the client gets a 503 and nothing else.
  HttpConnection(std::shared_ptr<HttpShared> shared, std::unique_ptr<HttpTransport> transport, std::string peer,
                 bool turn_away);
  ~HttpConnection() override;

  /// Enters the list of open connections and shakes hands.
  void open();
  void check_deadlines(HttpClock::time_point now);
  /// Closes it if no request is under way or expected at once.
  void close_if_idle();
  void close();
  bool closed() const { return phase_ == Phase::closed; }
  /// Destroys the socket, before the loop ends.
  void abandon() { transport_.reset(); }

  // For the responder.
  const HttpShared& shared() const { return *shared_; }
  /// What is appended here goes out with the next flush().
  std::string& output() { return output_; }
  void flush();
  std::size_t unsent_bytes() const { return output_.size() + in_flight_.size() - sent_; }
  /// All of the answer is in output(). Once it is sent the next request is read, or the connection ends.
  void answer_complete(bool keep_alive);
  /// The responder is about to be destroyed.
  void forget_responder(const HttpResponder& responder) {
    if (responder_ == &responder) responder_ = nullptr;
  }
  /// The body has been taken out of the request, or the request is gone.
  void release_body(std::size_t bytes) { shared_->body_bytes -= bytes; }

 private:
  enum class Phase : std::uint8_t { opening, head, body, answering, lingering, closed };

  void on_open() override;
  void on_read(std::string_view bytes) override;
  void on_written(std::size_t bytes) override;
  void on_end() override { close(); }

  void read();
  void take(std::string_view bytes);
  void take_kept();
  void begin_body();
  void account_body();
  void begin_answer(std::string_view rest);
  std::shared_ptr<HttpExchange> make_exchange();
  void refuse(int status, const std::string& message);
  void on_deadline();
  void write_more();
  void sent_all();
  void next_request();
  void linger();
  void start_timer(std::chrono::milliseconds limit) { deadline_ = HttpClock::now() + limit; }
  void stop_timer() { deadline_ = HttpClock::time_point::max(); }

  const std::shared_ptr<HttpShared> shared_;
  std::unique_ptr<HttpTransport> transport_;
  const std::string peer_;
  const bool turn_away_;
  Phase phase_ = Phase::opening;
  bool reading_ = false, writing_ = false;
  bool reused_ = false;    // a request has been answered
  bool complete_ = false;  // the answer is, but for sending it
  bool keep_alive_ = false;
  bool finished_ = false;                                          // the client knows that nothing more comes
  HttpClock::time_point deadline_ = HttpClock::time_point::max();  // of the phase
  HttpClock::time_point write_deadline_ = HttpClock::time_point::max();

  std::unique_ptr<HttpParser> parser_;  // from the first byte of a request until it is complete
  std::size_t body_bytes_ = 0;          // of the request that is being read
  std::string kept_;                    // came after the request that is being answered
  std::string output_;                  // waits
  std::string in_flight_;               // being written, from sent_ on
  std::size_t sent_ = 0;
  HttpResponder* responder_ = nullptr;  // while an answer is being produced; owned by the handler
};

}  // namespace sluice
