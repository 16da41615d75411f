#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "text/grammar.h"

namespace sluice {

/// White space between two tokens of JSON: enough for indented output, and an end to a model that writes nothing else.
constexpr int longest_json_space = 24;

/// Refuses what would take too long to compile, or too much memory, before it costs anything: throws RequestError.
void check_grammar_source(const GrammarSource& source);

/// "the JSON schema", ... in messages.
std::string_view grammar_kind_name(GrammarSource::Kind kind);

/// What tells one source from another.
std::string grammar_key(const GrammarSource& source);

/// The choices as a structural tag of xgrammar.
Json choice_format(const std::vector<std::string>& choices);

}  // namespace sluice
