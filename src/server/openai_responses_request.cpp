#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "server/api_error.h"
#include "server/chat_messages.h"
#include "server/fields.h"
#include "server/openai_responses.h"
#include "server/openai_responses_input.h"
#include "server/sampling_fields.h"
#include "server/structure_fields.h"

namespace sluice {

namespace {

constexpr std::string_view stateless = "nothing is stored here; send the whole conversation as input";

/// Fields about what this server does not keep or run, and those that have no effect.
void read_bookkeeping_fields(Fields& fields) {
  fields.refuse("previous_response_id", stateless);
  fields.refuse("conversation", stateless);
  fields.refuse("prompt", "there are no stored prompts here; send instructions and input");
  if (fields.boolean("background").value_or(false)) fields.refuse("background", "replies are not kept for later");
  fields.boolean("store");
  fields.object("metadata");
  fields.word("truncation", {"auto", "disabled"});
  fields.integer("max_tool_calls", 1, INT64_MAX);
  for (const char* key : {"user", "safety_identifier", "prompt_cache_key", "prompt_cache_retention", "service_tier"})
    fields.text(key);
  fields.object("stream_options");
}

bool includes_logprobs(Fields& fields) {
  const Json* include = fields.array("include");
  if (include == nullptr) return false;
  for (std::size_t i = 0; i < include->size(); ++i) {
    if (!(*include)[i].is_string()) fail_type(fmt::format("include[{}]", i), "a string", (*include)[i]);
  }
  return std::find(include->begin(), include->end(), "message.output_text.logprobs") != include->end();
}

void read_sampling(Fields& fields, const RequestDefaults& defaults, GenerationRequest& request) {
  read_sampling_fields(fields, defaults, request);
  if (request.n != 1) fail_field("n", "not supported: a response is one reply");
  request.stream = fields.boolean("stream").value_or(false);
  if (const std::optional<int> most = read_token_count(fields, {"max_output_tokens"}, 1))
    request.sampling.max_tokens = *most;
  check_min_tokens(fields, request.sampling);
  const auto top = static_cast<int>(fields.integer("top_logprobs", 0, defaults.most_logprobs).value_or(0));
  if (includes_logprobs(fields) || top > 0) request.sampling.top_logprobs = top;
}

void read_reasoning(Fields& fields, ChatPrompt& chat) {
  if (const Json* variables = fields.object("chat_template_kwargs")) chat.variables = *variables;
  const Json* reasoning = fields.object("reasoning");
  if (reasoning == nullptr) return;
  Fields settings(*reasoning, "reasoning");
  for (const char* key : {"summary", "generate_summary"}) settings.word(key, {"auto", "concise", "detailed"});
  if (const std::optional<std::string> effort = settings.text("effort"))
    set_reasoning_effort(chat, *effort, "reasoning.effort");
}

std::optional<GrammarSource> read_format(Fields& fields) {
  const std::optional<GrammarSource> other = read_structure_fields(fields);
  const Json* text = fields.object("text");
  if (text == nullptr) return other;
  Fields settings(*text, "text");
  settings.word("verbosity", {"low", "medium", "high"});
  const Json* format = settings.object("format");
  if (format == nullptr) return other;
  Fields form(*format, "text.format");
  form.required_text("type");
  const std::string type = *form.word("type", {"text", "json_object", "json_schema"});
  if (type == "text") return other;
  if (other) fail_field("text.format", "there is a second field for the form of the reply; send one of them");
  if (type == "json_schema") return parse_json_schema_format(*format, "text.format");
  return GrammarSource{};
}

/// In the shape of chats: {"type": "function", "function": {...}}.
Json responses_tools(Fields& fields) {
  const Json* given = fields.array("tools");
  Json tools = Json::array();
  for (std::size_t i = 0; given != nullptr && i < given->size(); ++i) {
    Fields tool((*given)[i], fmt::format("tools[{}]", i));
    const std::string type = tool.required_text("type");
    if (type != "function") {
      fail_field(tool.path_of("type"),
                 fmt::format("not supported: {}; tools are functions, which the client runs", shown(Json(type))));
    }
    Json function = {{"name", tool.required_text("name")}};
    if (const auto description = tool.text("description")) function["description"] = *description;
    if (const Json* parameters = tool.object("parameters")) function["parameters"] = *parameters;
    if (const auto strict = tool.boolean("strict")) function["strict"] = *strict;
    tools.push_back({{"type", "function"}, {"function", std::move(function)}});
  }
  return normalized_tools(tools, "tools");
}

/// The tool that an object's name means.
const Json& named_tool(Fields& object, const Json& tools) {
  const std::string name = object.required_text("name");
  const Json* tool = find_tool(tools, name);
  if (tool == nullptr) fail_type(object.path_of("name"), "the name of one of the tools", name);
  return *tool;
}

/// Leaves the tools that {"type": "allowed_tools"} names.
Json allowed_tools(Fields& choice, const Json& tools) {
  const Json& names = choice.required_array("tools");
  if (names.empty()) fail_field("tool_choice.tools", "expected at least one tool, found none");
  Json allowed = Json::array();
  for (std::size_t i = 0; i < names.size(); ++i) {
    Fields wanted(names[i], fmt::format("tool_choice.tools[{}]", i));
    allowed.push_back(named_tool(wanted, tools));
  }
  return allowed;
}

void read_responses_tools(Fields& fields, GenerationRequest& request) {
  request.parallel_tool_calls = fields.boolean("parallel_tool_calls").value_or(true);
  Json tools = responses_tools(fields);
  const Json* given = fields.find("tool_choice");
  if (given == nullptr || !given->is_object()) {
    ToolChoice choice = parse_tool_choice(given == nullptr ? Json() : *given, tools, "tool_choice");
    return set_tools(request, std::move(tools), std::move(choice), "tool_choice");
  }
  Fields choice(*given, "tool_choice");
  choice.required_text("type");
  if (choice.word("type", {"function", "allowed_tools"}) == "function") {
    std::string name = named_tool(choice, tools)["function"]["name"];
    return set_tools(request, std::move(tools), {ToolChoice::Kind::named, std::move(name)}, "tool_choice");
  }
  Json allowed = allowed_tools(choice, tools);
  const bool required = choice.word("mode", {"auto", "required"}) == "required";
  set_tools(request, std::move(allowed), {required ? ToolChoice::Kind::required : ToolChoice::Kind::automatic, {}},
            "tool_choice");
}

}  // namespace

GenerationRequest parse_responses_request(const Json& body, const RequestDefaults& defaults) {
  Fields fields(body);
  if (!defaults.has_chat) throw ApiError(400, "this model has no chat template; use /v1/completions");
  GenerationRequest request;
  request.model = fields.text("model").value_or("");
  const std::string instructions = fields.text("instructions").value_or("");
  const Json* input = fields.find("input");
  if (input == nullptr) fail_field("input", "this field is required");
  request.chat.emplace();
  request.chat->messages = messages_of_input(instructions, *input);
  read_bookkeeping_fields(fields);
  refuse_foreign_fields(fields);
  read_sampling(fields, defaults, request);
  read_reasoning(fields, *request.chat);
  request.grammar = read_format(fields);
  read_responses_tools(fields, request);
  request.unknown_fields = fields.unknown();
  return request;
}

}  // namespace sluice
