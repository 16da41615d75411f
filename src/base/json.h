#pragma once
#include <string_view>

#include <nlohmann/json.hpp>

namespace sluice {

/// JSON that keeps the order of keys, as templates and request bodies need it.
using Json = nlohmann::ordered_json;

/// Parses untrusted text. `what` names it in the error ("config.json of models/tiny").
/// Throws LoadError with line and column for bad syntax, invalid UTF-8, or nesting deeper than 128.
Json parse_json(std::string_view text, std::string_view what);

}  // namespace sluice
