#pragma once
#include <memory>

#include "base/json.h"
#include "server/generation_request.h"
#include "server/reply.h"

namespace sluice {

/// The body of POST /v1/messages (Anthropic). Throws ApiError (400) that names the field.
GenerationRequest parse_messages_request(const Json& body, const RequestDefaults& defaults);
/// The body of POST /v1/messages/count_tokens: only the chat of the request counts.
GenerationRequest parse_count_tokens_request(const Json& body, const RequestDefaults& defaults);
std::unique_ptr<ReplyWriter> make_messages_writer(const GenerationRequest& request, const ReplyIdentity& identity);
/// {"type": "error", "error": {...}}: Anthropic's shape around OpenAI's fields.
Json anthropic_error_json(const ApiError& error);

}  // namespace sluice
