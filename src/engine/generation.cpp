#include "engine/generation.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "engine/candidates.h"

namespace sluice {

namespace {
std::vector<TokenId> stop_tokens_of(const SamplingParams& params, const GenerationLimits& limits) {
  std::vector<TokenId> tokens = params.stop_token_ids;
  if (!params.ignore_eos) tokens.insert(tokens.end(), limits.stop_tokens.begin(), limits.stop_tokens.end());
  return tokens;
}

std::int64_t longest_of(const Request& request, const GenerationLimits& limits) {
  if (request.sampling.max_tokens == 0) return limits.max_model_len;
  return std::min(limits.max_model_len, std::ssize(request.prompt) + request.sampling.max_tokens);
}
}  // namespace

Generation::Generation(RequestId id, Request request, const GenerationLimits& limits, std::uint64_t seed)
    : id_(id),
      request_(std::move(request)),
      stop_tokens_(stop_tokens_of(request_.sampling, limits)),
      longest_(longest_of(request_, limits)),
      sampler_(request_.sampling, request_.prompt, stop_tokens_, limits.vocabulary,
               request_.sampling.seed.value_or(seed)),
      vocabulary_(static_cast<std::size_t>(limits.vocabulary)),
      tokens_(request_.prompt) {}

void Generation::start(Clock::time_point now) {
  if (timings_.queued.count() == 0) timings_.queued = now - submitted_;
}

std::int64_t Generation::reported_rows() const {
  return request_.sampling.prompt_logprobs < 0 ? 0 : prompt_tokens() - 1;
}

void Generation::report(std::int64_t row, std::span<const float> logits, SamplerScratch& scratch) {
  if (!prompt_error_.empty()) return;
  try {
    CHECK(row == std::ssize(prompt_logprobs_) && row < reported_rows(), "row {} after {} of {}", row,
          prompt_logprobs_.size(), reported_rows());
    prompt_logprobs_.push_back(prompt_logprob(row, logits, scratch));
  } catch (const std::exception& error) {
    prompt_error_ = error.what();
  }
}

PromptLogprob Generation::prompt_logprob(std::int64_t row, std::span<const float> logits,
                                         SamplerScratch& scratch) const {
  if (!summarize(logits).valid) {
    fail<RequestError>("the model's logits after {} tokens of the prompt are not finite numbers", row + 1);
  }
  const std::span<const float> ids = logits.first(vocabulary_);
  const LogSoftmax logprob(ids, summarize(ids).largest);
  const TokenId token = request_.prompt[static_cast<std::size_t>(row + 1)];
  const float logit = logits[static_cast<std::size_t>(token)];
  const auto count = static_cast<std::size_t>(request_.sampling.prompt_logprobs);
  return {token, logprob(logit), rank_of(ids, logit, token), logprob.best(count, scratch.candidates)};
}

TokenEvent Generation::advance(std::span<float> logits, SamplerScratch& scratch) {
  try {
    if (!prompt_error_.empty()) return end(FinishReason::error, prompt_error_);
    Sampled sampled = sampler_.sample(logits, request_.filter.get(), scratch);
    if (!sampled.error.empty()) {
      TokenEvent event = end(FinishReason::error, std::move(sampled.error));
      event.is_request_fault = sampled.is_request_fault;
      return event;
    }
    tokens_.push_back(sampled.token);
    const FinishReason reason = reason_after(sampled.token);
    TokenEvent event = this->event();
    event.token = sampled.token;
    event.logprob = sampled.logprob;
    event.rank = sampled.rank;
    event.top_logprobs = std::move(sampled.top_logprobs);
    event.prompt_logprobs = std::exchange(prompt_logprobs_, {});
    event.finish_reason = reason;
    return event;
  } catch (const std::exception& error) {
    return end(FinishReason::error, error.what());
  }
}

FinishReason Generation::reason_after(TokenId token) {
  if (std::find(stop_tokens_.begin(), stop_tokens_.end(), token) != stop_tokens_.end()) return FinishReason::stop;
  if (request_.stop != nullptr && request_.stop->stops_at(token)) return FinishReason::stop;
  return std::ssize(tokens_) >= longest_ ? FinishReason::length : FinishReason::none;
}

TokenEvent Generation::end(FinishReason reason, std::string error) {
  TokenEvent event = this->event();
  event.finish_reason = reason;
  event.error = std::move(error);
  return event;
}

TokenEvent Generation::event() {
  timings_.total = Clock::now() - submitted_;
  if (timings_.first_token.count() == 0 && output_tokens() > 0) timings_.first_token = timings_.total;
  TokenEvent event;
  event.request = id_;
  event.prompt_tokens = static_cast<int>(prompt_tokens());
  event.output_tokens = static_cast<int>(output_tokens());
  event.timings = timings_;
  return event;
}

bool Generation::deliver(const TokenEvent& event) const {
  try {
    request_.on_event(event);
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

}  // namespace sluice
