#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "server/fields.h"
#include "server/generation_request.h"

// What requests of all the APIs have in common. Every function throws ApiError (400) that names the field.
namespace sluice {

/// Fills request.sampling with the server's defaults, then reads into the request: temperature, top_p, top_k, min_p,
/// presence_penalty, frequency_penalty, repetition_penalty, seed, stop, stop_token_ids, min_tokens, ignore_eos,
/// logit_bias, n, prompt_logprobs, priority, include_stop_str_in_output, thinking_budget (thinking_token_budget),
/// return_token_ids, request_id.
void read_sampling_fields(Fields& fields, const RequestDefaults& defaults, GenerationRequest& request);

/// The first of these fields that is there; a count of tokens too large for an int is the largest int. The field must
/// be at least `low`.
std::optional<int> read_token_count(Fields& fields, const std::vector<std::string>& keys, int low);
/// Call it when max_tokens is known: min_tokens may not be larger.
void check_min_tokens(const Fields& fields, const SamplingParams& sampling);

/// A string or a list of strings, none of them empty.
std::vector<std::string> parse_stop(const Json& stop, const RequestDefaults& defaults, const std::string& path);

/// stream, stream_options {include_usage, continuous_usage_stats}. After read_sampling_fields.
void read_stream_fields(Fields& fields, GenerationRequest& request);

/// Fields of other servers that would change the reply if they worked: refused by name, unless they ask for what
/// happens anyway (null, false, an empty list, the default).
void refuse_foreign_fields(Fields& fields);

}  // namespace sluice
