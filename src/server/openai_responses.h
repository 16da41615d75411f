#pragma once
#include <memory>

#include "base/json.h"
#include "server/generation_request.h"
#include "server/reply.h"

namespace sluice {

/// The body of POST /v1/responses (nothing is stored: store and previous_response_id are no use here). Throws ApiError
/// (400) that names the field.
GenerationRequest parse_responses_request(const Json& body, const RequestDefaults& defaults);
/// body: of the request, whose settings the reply repeats.
std::unique_ptr<ReplyWriter> make_responses_writer(const Json& body, const GenerationRequest& request,
                                                   const ReplyIdentity& identity);

}  // namespace sluice
