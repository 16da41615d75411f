#include "text/grammar_sources.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/error.h"

namespace sluice {

namespace {

using Kind = GrammarSource::Kind;

constexpr std::size_t largest_source = std::size_t{1} << 20;
constexpr std::size_t deepest_schema = 64;
constexpr std::size_t most_choices = 10000;
constexpr std::size_t longest_regex = 8192, most_quantifiers = 128;
constexpr std::size_t most_optional_properties = 256;

std::size_t depth_of(const Json& value) {
  std::size_t deepest = 0;
  for (const Json& inner : value) deepest = std::max(deepest, inner.is_structured() ? depth_of(inner) : 0);
  return deepest + 1;
}

/// Optional properties cost time at every token of the reply.
void check_properties(const Json& schema) {
  if (schema.is_object() && schema.contains("properties") && schema["properties"].is_object()) {
    const std::size_t required =
        schema.contains("required") && schema["required"].is_array() ? schema["required"].size() : 0;
    if (schema["properties"].size() > required + most_optional_properties) {
      fail<RequestError>("an object of the schema has {} properties of which {} are required; allowed are {} others",
                         schema["properties"].size(), required, most_optional_properties);
    }
  }
  for (const Json& inner : schema) {
    if (inner.is_structured()) check_properties(inner);
  }
}

void check_size(std::string_view what, std::size_t size, std::size_t most) {
  if (size > most) fail<RequestError>("{} has {} bytes; allowed are at most {}", what, size, most);
}

void check_schema(std::string_view what, const Json& schema) {
  check_size(what, schema.dump().size(), largest_source);
  if (!schema.is_structured()) return;
  if (const std::size_t depth = depth_of(schema); depth > deepest_schema) {
    fail<RequestError>("{} is nested {} levels deep; allowed are at most {}", what, depth, deepest_schema);
  }
  check_properties(schema);
}

void check_regex(const std::string& regex) {
  check_size("the regular expression", regex.size(), longest_regex);
  const auto quantifiers = static_cast<std::size_t>(std::count_if(
      regex.begin(), regex.end(), [](char c) { return std::string_view("*+?{").find(c) != std::string_view::npos; }));
  if (quantifiers > most_quantifiers) {
    fail<RequestError>("the regular expression has {} of * + ? {{; allowed are at most {}", quantifiers,
                       most_quantifiers);
  }
}

/// Past a string "...", a class [...] or a comment that begins here.
std::size_t skip_quoted(std::string_view text, std::size_t begin) {
  const char close = text[begin] == '[' ? ']' : text[begin] == '#' ? '\n' : text[begin];
  std::size_t at = begin + 1;
  while (at < text.size() && text[at] != close) at += text[at] == '\\' && close != '\n' ? 2 : 1;
  return std::min(at + 1, text.size());
}

constexpr std::string_view name_characters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";

/// Rules that name tokens by id would let special tokens into the reply.
void check_ebnf(std::string_view text) {
  check_size("the grammar", text.size(), largest_source);
  for (std::size_t at = 0; at < text.size();) {
    if (std::string_view("\"[#").find(text[at]) != std::string_view::npos) {
      at = skip_quoted(text, at);
      continue;
    }
    const std::size_t name_end = std::min(text.find_first_not_of(name_characters, at), text.size());
    const std::string_view name = text.substr(at, name_end - at);
    const std::size_t next = text.find_first_not_of(" \t\r\n", name_end);
    const bool macro = name == "Token" || name == "ExcludeToken" || name == "TokenTagDispatch";
    if (macro && next != std::string_view::npos && text[next] == '(') {
      fail<RequestError>("the grammar names tokens by id ({}): only text can be described", name);
    }
    at = std::max(name_end, at + 1);
  }
}

void check_choices(const std::vector<std::string>& choices) {
  if (choices.empty()) fail<RequestError>("choice has no entries; at least one is needed");
  if (choices.size() > most_choices) {
    fail<RequestError>("choice has {} entries; allowed are at most {}", choices.size(), most_choices);
  }
  std::size_t bytes = 0;
  for (const std::string& choice : choices) {
    if (choice.empty()) fail<RequestError>("an entry of choice is empty");
    bytes += choice.size();
  }
  check_size("choice", bytes, largest_source);
}

}  // namespace

std::string_view grammar_kind_name(GrammarSource::Kind kind) {
  switch (kind) {
    case Kind::json_object: return "the JSON object";
    case Kind::json_schema: return "the JSON schema";
    case Kind::regex: return "the regular expression";
    case Kind::choice: return "the list of choices";
    case Kind::ebnf: return "the grammar";
    case Kind::tool_calls: break;
  }
  return "the tools";
}

void check_grammar_source(const GrammarSource& source) {
  switch (source.kind) {
    case Kind::json_object: break;
    case Kind::json_schema: check_schema(grammar_kind_name(source.kind), source.schema); break;
    case Kind::regex: check_regex(source.text); break;
    case Kind::ebnf: check_ebnf(source.text); break;
    case Kind::choice: check_choices(source.choices); break;
    case Kind::tool_calls: check_schema(grammar_kind_name(source.kind), source.tools); break;
  }
}

std::string grammar_key(const GrammarSource& source) {
  Json key = Json::array({static_cast<int>(source.kind)});
  switch (source.kind) {
    case Kind::json_object: break;
    case Kind::json_schema: key.push_back(source.schema); break;
    case Kind::regex:
    case Kind::ebnf: key.push_back(source.text); break;
    case Kind::choice: key.push_back(source.choices); break;
    case Kind::tool_calls:
      key.push_back(source.tools);
      key.push_back(source.parallel_tool_calls);
      break;
  }
  return key.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Json choice_format(const std::vector<std::string>& choices) {
  Json elements = Json::array();
  for (const std::string& choice : choices) elements.push_back({{"type", "const_string"}, {"value", choice}});
  return {{"type", "structural_tag"}, {"format", {{"type", "or"}, {"elements", std::move(elements)}}}};
}

}  // namespace sluice
