#pragma once
#include "base/json.h"
#include "server/served_model.h"

namespace sluice {

// Small questions about text, answered on a worker thread: body of the request to body of the reply. Throw ApiError.

/// {"prompt" or "content": text, or "messages", ...} -> {"count", "max_model_len", "tokens", "token_strs"}
Json tokenize_task(const Json& body, const ServedModel& model);
/// {"tokens": [ids]} -> {"prompt", "content"}: the text, under both names that clients know
Json detokenize_task(const Json& body, const ServedModel& model);
/// A chat -> {"prompt": what the chat template makes of it}
Json template_task(const Json& body, const ServedModel& model);
/// A chat as /v1/messages takes it -> {"input_tokens"}
Json count_tokens_task(const Json& body, const ServedModel& model);

}  // namespace sluice
