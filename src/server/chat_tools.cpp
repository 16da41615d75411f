#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "server/api_error.h"
#include "server/chat_messages.h"
#include "server/fields.h"

namespace sluice {

namespace {

constexpr std::size_t most_tools = 1024;
constexpr std::size_t longest_name = 64;

bool is_name(std::string_view text) {
  auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
           c == '.';
  };
  return !text.empty() && text.size() <= longest_name && std::all_of(text.begin(), text.end(), fits);
}

/// Takes time in the number of keys, as Json's own insertion does not.
void append_entry(Json& object, const std::string& key, Json value) {
  object.get_ref<Json::object_t&>().emplace_back(key, std::move(value));
}

Json without_nulls(const Json& object) {
  Json kept = Json::object();
  for (const auto& [key, value] : object.items())
    if (!value.is_null()) append_entry(kept, key, value);
  return kept;
}

std::string checked_name(const Json& function, const std::string& path) {
  Fields fields(function, path);
  std::string name = fields.required_text("name");
  if (!is_name(name))
    fail_type(fields.path_of("name"), "a name of 1 to 64 letters, digits, \"_\", \"-\" or \".\"", name);
  fields.text("description");
  fields.object("parameters");
  fields.boolean("strict");
  return name;
}

const std::string& name_of(const Json& tool) { return tool["function"]["name"].get_ref<const std::string&>(); }

ToolChoice named_choice(const Json& choice, const Json& tools, const std::string& path) {
  Fields fields(choice, path);
  fields.required_text("type");
  fields.word("type", {"function"});
  Fields function(fields.required_object("function"), fields.path_of("function"));
  std::string name = function.required_text("name");
  if (tools.is_null() || find_tool(tools, name) == nullptr)
    fail_type(function.path_of("name"), "the name of one of the tools", name);
  return {ToolChoice::Kind::named, std::move(name)};
}

}  // namespace

const Json* find_tool(const Json& tools, const std::string& name) {
  for (const Json& tool : tools)
    if (name_of(tool) == name) return &tool;
  return nullptr;
}

Json normalized_tools(const Json& tools, const std::string& path) {
  if (!tools.is_array()) fail_type(path, "an array of tools", tools);
  if (tools.size() > most_tools)
    fail_field(path, fmt::format("at most {} tools are taken, found {}", most_tools, tools.size()));
  Json normalized = Json::array();
  std::set<std::string> names;
  for (std::size_t i = 0; i < tools.size(); ++i) {
    Fields fields(tools[i], fmt::format("{}[{}]", path, i));
    fields.word("type", {"function"});
    const Json& function = fields.required_object("function");
    const std::string name = checked_name(function, fields.path_of("function"));
    if (!names.insert(name).second)
      fail_field(fields.path_of("function.name"), fmt::format("\"{}\" is declared twice", name));
    Json tool = Json::object();
    if (!fields.has("type")) append_entry(tool, "type", "function");
    for (const auto& [key, value] : tools[i].items())
      if (!value.is_null()) append_entry(tool, key, key == "function" ? without_nulls(value) : value);
    normalized.push_back(std::move(tool));
  }
  return normalized.empty() ? Json() : normalized;
}

ToolChoice parse_tool_choice(const Json& choice, const Json& tools, const std::string& path) {
  if (choice.is_null() || choice == "auto") return {};
  if (choice == "none") return {ToolChoice::Kind::none, {}};
  if (choice.is_object()) return named_choice(choice, tools, path);
  if (choice != "required")
    fail_type(path, R"("auto", "none", "required" or {"type": "function", "function": {"name": ...}})", choice);
  if (tools.is_null()) fail_field(path, "\"required\" needs tools");
  return {ToolChoice::Kind::required, {}};
}

void set_tools(GenerationRequest& request, Json tools, ToolChoice choice, const std::string& path) {
  request.tool_choice = std::move(choice);
  const ToolChoice::Kind kind = request.tool_choice.kind;
  const bool visible = kind != ToolChoice::Kind::none;
  request.chat->tools = visible ? std::move(tools) : Json();
  if (kind != ToolChoice::Kind::required && kind != ToolChoice::Kind::named) return;
  if (request.grammar) fail_field(path, "a reply that must be a tool call cannot have another structure");
  const Json* named =
      kind == ToolChoice::Kind::named ? find_tool(request.chat->tools, request.tool_choice.name) : nullptr;
  GrammarSource source;
  source.kind = GrammarSource::Kind::tool_calls;
  source.tools = named != nullptr ? Json::array({*named}) : request.chat->tools;
  source.parallel_tool_calls = request.parallel_tool_calls && named == nullptr;
  request.grammar = std::move(source);
}

}  // namespace sluice
