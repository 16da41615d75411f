#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sluice {

using TokenId = std::int32_t;
using RequestId = std::uint64_t;

/// How the next token is chosen from a row of logits. Applied in this order: token filter, minimum length,
/// logit bias, penalties, temperature, top-k, top-p, min-p.
struct SamplingParams {
  float temperature = 1.0f;         // 0: arg-max
  int top_k = 0;                    // 0: all
  float top_p = 1.0f;               // 1: all
  float min_p = 0.0f;               // 0: all; share of the best token's probability
  float repetition_penalty = 1.0f;  // divides (multiplies, if negative) logits of ids seen in prompt or output
  float presence_penalty = 0.0f;    // subtracted once for ids seen in the output
  float frequency_penalty = 0.0f;   // subtracted for each time an id was seen in the output
  std::vector<std::pair<TokenId, float>> logit_bias;
  std::optional<std::uint64_t> seed;    // absent: drawn from the engine's own generator
  int max_tokens = 0;                   // 0: up to the context length
  int min_tokens = 0;                   // stop ids are masked before this many tokens
  std::vector<TokenId> stop_token_ids;  // in addition to those of the model
  bool ignore_eos = false;              // the model's own stop ids do not end the request
  int top_logprobs = -1;                // -1: none; n: of the chosen token and the n best
  int prompt_logprobs = -1;             // -1: none; n: of each token of the prompt and the n best in its place
};

/// Narrows what may be sampled next (a grammar). One per request, called on the engine's thread.
class TokenFilter {
 public:
  virtual ~TokenFilter() = default;
  /// Sets the logits of forbidden ids to -infinity. logits: [vocabulary].
  virtual void mask(std::span<float> logits) = 0;
  /// The token that was chosen.
  virtual void accept(TokenId token) = 0;
};

/// Watches the text of a reply for stop strings, also across token borders. One per request.
class StopCheck {
 public:
  virtual ~StopCheck() = default;
  /// True when the reply ends with this token (which is still reported).
  virtual bool stops_at(TokenId token) = 0;
};

enum class FinishReason : std::uint8_t { none, stop, length, cancelled, error };

struct TokenLogprob {
  TokenId token = 0;
  float logprob = 0.0f;
};

/// A token of the prompt, as the model saw it coming: log-probabilities over the ids that can be sampled.
struct PromptLogprob {
  TokenId token = 0;
  float logprob = 0.0f;
  int rank = 1;                   // 1: the most likely
  std::vector<TokenLogprob> top;  // best first
};

/// Times of one request, from its submission; zero until reached.
struct RequestTimings {
  std::chrono::nanoseconds queued{}, first_token{}, total{};
};

/// One generated token, or the end of a request. The last event of a request has a reason other than none.
/// token is absent in an event that only ends (cancelled, error, length with no room for a token).
struct TokenEvent {
  RequestId request = 0;
  std::optional<TokenId> token;
  std::optional<float> logprob;  // of token, when top_logprobs >= 0
  int rank = 0;                  // of token before filter, bias and penalties, with logprob; 1: the most likely
  std::vector<TokenLogprob> top_logprobs;  // best first
  // With the first token, when prompt_logprobs >= 0: of prompt tokens 1, 2, ... (nothing comes before token 0).
  std::vector<PromptLogprob> prompt_logprobs;
  FinishReason finish_reason = FinishReason::none;
  std::string error;              // for FinishReason::error
  bool is_request_fault = false;  // of error: the request's own parameters lead to it
  int prompt_tokens = 0, output_tokens = 0;
  RequestTimings timings;
};

/// Called on the engine's thread, once for each event of the request; must not block for long.
using TokenCallback = std::function<void(const TokenEvent&)>;

/// What the engine generates from: token ids in, token events out.
struct Request {
  std::vector<TokenId> prompt;
  SamplingParams sampling;
  int priority = 0;  // lower runs first
  std::unique_ptr<TokenFilter> filter;
  std::unique_ptr<StopCheck> stop;
  TokenCallback on_event;
};

}  // namespace sluice
