#pragma once
#include "base/json.h"

namespace sluice {

/// The messages of a chat, in the form that chat templates are given, of Anthropic's system (null, a text or text
/// blocks) and messages. Throws ApiError (400) that names the field.
Json messages_of_anthropic(const Json* system, const Json& messages);

}  // namespace sluice
