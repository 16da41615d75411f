#pragma once
#include <memory>

#include "base/json.h"
#include "server/generation_request.h"
#include "server/reply.h"

namespace sluice {

/// The body of POST /v1/completions. Throws ApiError (400) that names the field.
GenerationRequest parse_completion_request(const Json& body, const RequestDefaults& defaults);
std::unique_ptr<ReplyWriter> make_completion_writer(const GenerationRequest& request, const ReplyIdentity& identity);

}  // namespace sluice
