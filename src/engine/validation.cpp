#include "engine/validation.h"

#include <cmath>
#include <string_view>

#include <fmt/format.h>

#include "base/error.h"

namespace sluice {

namespace {
constexpr int most_top_logprobs = 100;

template <class T>
void require(bool allowed, std::string_view name, const T& found, std::string_view range) {
  if (!allowed) fail<RequestError>("{} is {}; allowed is {}", name, found, range);
}

void check_id(std::string_view where, TokenId token, std::int64_t end) {
  if (token < 0 || token >= end)
    fail<RequestError>("{} is {}; allowed are token ids from 0 to {}", where, token, end - 1);
}

void check_prompt(const Request& request, const RequestLimits& limits) {
  if (request.prompt.empty()) fail<RequestError>("prompt is empty; at least one token is needed");
  if (std::ssize(request.prompt) >= limits.max_model_len) {
    fail<RequestError>(
        "prompt has {} tokens, which leaves no room for a reply; allowed are at most {} (max_model_len is {})",
        request.prompt.size(), limits.max_model_len - 1, limits.max_model_len);
  }
  for (std::size_t i = 0; i < request.prompt.size(); ++i) {
    const TokenId token = request.prompt[i];
    if (token < 0 || token >= limits.embedded_ids) check_id(fmt::format("prompt[{}]", i), token, limits.embedded_ids);
  }
}

void check_lengths(const SamplingParams& params) {
  require(params.max_tokens >= 0, "max_tokens", params.max_tokens, "0 (up to the context length) or more");
  require(params.min_tokens >= 0, "min_tokens", params.min_tokens, "0 or more");
  if (params.max_tokens > 0 && params.min_tokens > params.max_tokens) {
    fail<RequestError>("min_tokens is {}; allowed is at most max_tokens, {}", params.min_tokens, params.max_tokens);
  }
  require(params.top_logprobs >= -1 && params.top_logprobs <= most_top_logprobs, "top_logprobs", params.top_logprobs,
          fmt::format("-1 (none) to {}", most_top_logprobs));
  require(params.prompt_logprobs >= -1 && params.prompt_logprobs <= most_top_logprobs, "prompt_logprobs",
          params.prompt_logprobs, fmt::format("-1 (none) to {}", most_top_logprobs));
}
}  // namespace

void check_request(const Request& request, const RequestLimits& limits) {
  const SamplingParams& params = request.sampling;
  check_prompt(request, limits);
  check_lengths(params);
  require(std::isfinite(params.temperature) && params.temperature >= 0.0f, "temperature", params.temperature,
          "0 or more");
  require(params.top_k >= 0, "top_k", params.top_k, "0 (all) or more");
  require(params.top_p > 0.0f && params.top_p <= 1.0f, "top_p", params.top_p, "above 0, up to 1");
  require(params.min_p >= 0.0f && params.min_p <= 1.0f, "min_p", params.min_p, "0 to 1");
  require(params.repetition_penalty >= 0.01f && params.repetition_penalty <= 100.0f, "repetition_penalty",
          params.repetition_penalty, "0.01 to 100");
  require(std::fabs(params.presence_penalty) <= 2.0f, "presence_penalty", params.presence_penalty, "-2 to 2");
  require(std::fabs(params.frequency_penalty) <= 2.0f, "frequency_penalty", params.frequency_penalty, "-2 to 2");
  for (const auto& [token, bias] : params.logit_bias) {
    check_id("a token of logit_bias", token, limits.vocabulary);
    require(std::isfinite(bias), fmt::format("logit_bias of token {}", token), bias, "a finite number");
  }
  for (const TokenId token : params.stop_token_ids) check_id("a token of stop_token_ids", token, limits.embedded_ids);
}

}  // namespace sluice
