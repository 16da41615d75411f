#pragma once
#include <cstddef>
#include <vector>

#include "base/json.h"
#include "server/reply.h"

namespace sluice {

/// The chats' shape: {"content": [{"token", "logprob", "bytes", "top_logprobs"}], "refusal"}.
Json chat_logprobs(const std::vector<ReportedToken>& tokens, int top);

/// vLLM's shape for the tokens of a prompt: a list of null (nothing comes before the first) or
/// {"ID": {"logprob", "rank", "decoded_token"}, ...}, the prompt's own token first, then the `top` best.
Json prompt_logprobs_json(const std::vector<ReportedToken>& tokens, int top);

/// The shape of the completions of old: {"tokens", "token_logprobs", "top_logprobs", "text_offset"}, one entry a token.
/// Offsets are in characters of the text, a prompt that is echoed included. Tokens that are not whole characters show
/// their bytes.
class CompletionLogprobs {
 public:
  explicit CompletionLogprobs(int top) : top_(top) {}
  /// The tokens that follow those that it was given before.
  Json add(const std::vector<ReportedToken>& tokens);

 private:
  int top_;
  std::size_t offset_ = 0;
};

}  // namespace sluice
