#pragma once
#include <string>
#include <string_view>

#include "base/json.h"

namespace sluice {

/// Appends a JSON string, with its quotes, of text in UTF-8.
void append_json_string(std::string& out, std::string_view text);

/// JSON without spaces. Text that is no UTF-8 gets replacement characters.
std::string json_text(const Json& json);

}  // namespace sluice
