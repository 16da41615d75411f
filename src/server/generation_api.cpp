#include "server/generation_api.h"

#include "server/anthropic_messages.h"
#include "server/openai_chat.h"
#include "server/openai_completions.h"
#include "server/openai_responses.h"

namespace sluice {

namespace {

/// For the APIs whose replies do not repeat the request's body.
template <std::unique_ptr<ReplyWriter> (*make)(const GenerationRequest&, const ReplyIdentity&)>
std::unique_ptr<ReplyWriter> without_body(const Json&, const GenerationRequest& request,
                                          const ReplyIdentity& identity) {
  return make(request, identity);
}

constexpr GenerationApi all_apis[] = {
    {"/v1/chat/completions", parse_chat_request, without_body<make_chat_writer>, openai_error_json},
    {"/v1/completions", parse_completion_request, without_body<make_completion_writer>, openai_error_json},
    {"/v1/responses", parse_responses_request, make_responses_writer, openai_error_json},
    {"/v1/messages", parse_messages_request, without_body<make_messages_writer>, anthropic_error_json},
};

}  // namespace

std::span<const GenerationApi> generation_apis() { return all_apis; }

Json openai_error_json(const ApiError& error) { return error.json(); }

}  // namespace sluice
