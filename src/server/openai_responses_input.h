#pragma once
#include <string>

#include "base/json.h"

namespace sluice {

/// The messages of a chat, in the form that chat templates are given, of the Responses API's instructions and input (a
/// text or a list of items). Throws ApiError (400) that names the field.
Json messages_of_input(const std::string& instructions, const Json& input);

}  // namespace sluice
