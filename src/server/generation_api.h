#pragma once
#include <memory>
#include <span>
#include <string_view>

#include "base/json.h"
#include "server/api_error.h"
#include "server/generation_request.h"
#include "server/reply.h"

namespace sluice {

/// One of the APIs that generate: a translation to GenerationRequest and back.
struct GenerationApi {
  std::string_view path;
  GenerationRequest (*parse)(const Json& body, const RequestDefaults& defaults);
  std::unique_ptr<ReplyWriter> (*make_writer)(const Json& body, const GenerationRequest& request,
                                              const ReplyIdentity& identity);
  Json (*error_json)(const ApiError& error);
};
std::span<const GenerationApi> generation_apis();

/// OpenAI's shape of an error.
Json openai_error_json(const ApiError& error);

}  // namespace sluice
