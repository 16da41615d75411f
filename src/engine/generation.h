#pragma once
#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/request.h"
#include "engine/sampler.h"

namespace sluice {

/// What all requests of an engine have in common.
struct GenerationLimits {
  std::int64_t max_model_len = 0;
  int vocabulary = 0;
  std::vector<TokenId> stop_tokens;  // of the model
};

/// One request on its way: its tokens, how the next one is chosen, and when it ends.
class Generation {
 public:
  using Clock = std::chrono::steady_clock;

  /// The request must have passed check_request. seed is used when the request brings none.
  Generation(RequestId id, Request request, const GenerationLimits& limits, std::uint64_t seed);

  RequestId id() const { return id_; }
  int priority() const { return request_.priority; }
  std::span<const TokenId> tokens() const { return tokens_; }  // prompt and output
  std::int64_t prompt_tokens() const { return std::ssize(request_.prompt); }
  std::int64_t output_tokens() const { return std::ssize(tokens_) - prompt_tokens(); }
  /// Tokens that it has at the end, if nothing stops it before.
  std::int64_t longest() const { return longest_; }

  /// So many first rows of the prompt tell the log-probability of the token that comes after them; 0: not wanted.
  std::int64_t reported_rows() const;

  /// Its first step begins.
  void start(Clock::time_point now);
  /// The logits after token `row` of the prompt, one of reported_rows(). Rows come in order, each once.
  void report(std::int64_t row, std::span<const float> logits, SamplerScratch& scratch);
  /// The next token after a row of logits, which is overwritten; a failure within ends the request.
  TokenEvent advance(std::span<float> logits, SamplerScratch& scratch);
  /// The event of an end without a token.
  TokenEvent end(FinishReason reason, std::string error = {});
  /// Calls the request's callback. False when that threw.
  bool deliver(const TokenEvent& event) const;

 private:
  PromptLogprob prompt_logprob(std::int64_t row, std::span<const float> logits, SamplerScratch& scratch) const;
  FinishReason reason_after(TokenId token);
  TokenEvent event();

  RequestId id_;
  Request request_;
  std::vector<TokenId> stop_tokens_;  // all that end it
  std::int64_t longest_;
  Sampler sampler_;
  std::size_t vocabulary_;
  std::vector<TokenId> tokens_;
  std::vector<PromptLogprob> prompt_logprobs_;  // until the first token
  std::string prompt_error_;                    // not empty: what went wrong in them; the request ends with it
  Clock::time_point submitted_ = Clock::now();
  RequestTimings timings_;
};

}  // namespace sluice
