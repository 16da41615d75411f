#pragma once
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "server/http.h"
#include "server/metrics.h"
#include "server/preparation.h"
#include "server/reply.h"
#include "server/served_model.h"
#include "server/token_inbox.h"
#include "text/reply_reader.h"

namespace sluice {

/// One generating request: its choices in the engine, and the answer to the client. Belongs to the event thread.
class GenerationJob {
 public:
  using Clock = std::chrono::steady_clock;

  /// error_json: how the API shows an error. The metrics must outlive the job.
  GenerationJob(std::uint64_t id, std::shared_ptr<const ServedModel> model, PreparedRequest prepared,
                std::unique_ptr<ReplyWriter> writer, Json (*error_json)(const ApiError&),
                std::shared_ptr<HttpExchange> exchange, Metrics& metrics);

  /// Submits every choice. When the engine refuses one, the answer is the error, and finished() comes once
  /// what was submitted before has been cancelled.
  void start(const std::shared_ptr<TokenInbox>& inbox);
  void take(int choice, TokenEvent& event);
  /// Sends what take() wrote and did not send itself.
  void flush();
  /// The client went away: what runs is cancelled.
  void client_left();
  /// Ends the answer with an error; what runs is cancelled.
  void abort(const ApiError& error);
  /// A stream that has been silent for this long gets a sign of life.
  void ping(Clock::time_point now, Clock::duration silence);

  std::uint64_t id() const { return id_; }
  /// Nothing of it is left in the engine, and the client has its answer.
  bool finished() const { return running_ == 0; }
  /// For the log: "stop", "length", "tool_calls", "abort", "error".
  std::string_view outcome() const { return name_of(outcome_); }
  const ReplyResult& result() const { return result_; }
  int status() const { return status_; }

 private:
  struct Choice {
    std::unique_ptr<ReplyReader> reader;  // none without a tokenizer
    RequestId request = 0;
    bool submitted = false, ended = false, in_reasoning = false;
    Timings timings;
    std::string ids_text;  // without a tokenizer
  };

  void prepare_choices();
  Request engine_request(std::size_t index, const std::shared_ptr<TokenInbox>& inbox) const;
  void cancel_choices();
  void take_prompt(std::size_t index, TokenEvent& event);
  void take_token(std::size_t index, TokenEvent& event);
  void end_choice(std::size_t index, const TokenEvent& event);
  void count(std::size_t index, const TokenEvent& event);
  bool ends_turn(const TokenEvent& event) const;
  ReplyDelta read(Choice& choice, TokenId token, bool ends_turn) const;
  ReportedToken reported(TokenId token, std::optional<float> logprob, int rank,
                         const std::vector<TokenLogprob>& top) const;
  void begin();
  void add_event(std::variant<ChoiceDelta, ChoiceEnd> event);
  void write(const std::variant<ChoiceDelta, ChoiceEnd>& event);
  void complete();

  std::uint64_t id_;
  std::shared_ptr<const ServedModel> model_;
  PreparedRequest prepared_;
  std::unique_ptr<ReplyWriter> writer_;
  Json (*error_json_)(const ApiError&);
  std::shared_ptr<HttpExchange> exchange_;  // null once answered or left
  Metrics& metrics_;

  ReplyResult result_;
  std::vector<Choice> choices_;
  std::optional<TokenId> end_of_reasoning_;
  std::size_t running_ = 0;  // choices in the engine
  bool begun_ = false, failed_ = false;
  EndKind outcome_ = EndKind::aborted;
  int status_ = 0;
  std::vector<std::variant<ChoiceDelta, ChoiceEnd>> held_;  // until begun_
  std::string out_;                                         // events of the stream, until flush()
  Clock::time_point last_sign_ = Clock::now();
};

}  // namespace sluice
