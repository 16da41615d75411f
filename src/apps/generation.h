#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "apps/command_options.h"
#include "apps/session.h"
#include "engine/request.h"
#include "text/reply_parser.h"
#include "text/reply_reader.h"

namespace sluice {

/// The flags, then generation_config.json (do_sample false: greedy), then the built-in defaults.
SamplingParams sampling_params(const SamplingFlags& flags, const EngineFlags& engine, const Json& generation_config);

/// Variables of the chat template that --thinking sets.
Json template_variables(const std::string& thinking);

struct Generated {
  std::vector<TokenId> tokens;  // the stop token included
  Reply reply;                  // empty without a tokenizer
  FinishReason finish_reason = FinishReason::none;
  int prompt_tokens = 0;
  RequestTimings timings;

  double decode_tokens_per_second() const;
  double prefill_tokens_per_second() const;
};

/// What a token added, as soon as it is known; the last call brings what was held back, without a token.
using ReplyCallback = std::function<void(std::optional<TokenId> token, const ReplyDelta& delta)>;

/// Runs one request to its end. Ctrl-C cancels it: then finish_reason is cancelled. Throws RequestError when the
/// request fails.
Generated generate_reply(const Session& session, std::vector<TokenId> prompt, const SamplingParams& sampling,
                         const ReplyReading& reading, const ReplyCallback& on_delta);

}  // namespace sluice
