#pragma once
#include <optional>
#include <string>

#include "base/json.h"
#include "server/fields.h"
#include "text/grammar.h"

namespace sluice {

/// What a request says about the form of its reply: response_format, structured_outputs {json, regex, choice, grammar,
/// json_object}, guided_json, guided_regex, guided_choice, guided_grammar. Throws ApiError (400) if there is more than
/// one of them.
std::optional<GrammarSource> read_structure_fields(Fields& fields);

/// {"type": "text" | "json_object" | "json_schema", ...}; json_schema with its schema below "json_schema", as chats
/// have it. None for text.
std::optional<GrammarSource> parse_response_format(const Json& format, const std::string& path);

/// The fields name, schema, strict, description of a JSON schema format, wherever an API has them.
GrammarSource parse_json_schema_format(const Json& format, const std::string& path);

}  // namespace sluice
