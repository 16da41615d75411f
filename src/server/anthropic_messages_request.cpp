#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "server/anthropic_content.h"
#include "server/anthropic_messages.h"
#include "server/chat_messages.h"
#include "server/fields.h"
#include "server/sampling_fields.h"
#include "server/structure_fields.h"

namespace sluice {

namespace {

/// The assistant's message at the end is the beginning of the reply.
void read_prefill(ChatPrompt& chat, std::size_t given_messages) {
  const Json& last = chat.messages.back();
  if (last["role"] != "assistant") return;
  const std::string path = fmt::format("messages[{}].content", given_messages - 1);
  if (last.contains("tool_calls")) fail_field(path, "the last message calls tools; their results must follow it");
  if (last["content"].get_ref<const std::string&>().empty())
    fail_field(path, "the last message, the assistant's, is to be gone on with; it needs text");
  chat.add_generation_prompt = false;
  chat.continue_final_message = true;
}

void read_thinking(Fields& fields, GenerationRequest& request) {
  if (const Json* variables = fields.object("chat_template_kwargs")) request.chat->variables = *variables;
  const Json* thinking = fields.object("thinking");
  if (thinking == nullptr) return;
  Fields settings(*thinking, "thinking");
  settings.required_text("type");
  const std::string type = *settings.word("type", {"enabled", "disabled", "adaptive"});
  request.chat->variables["enable_thinking"] = type != "disabled";
  settings.word("display", {"summarized", "omitted"});
  const auto budget = read_token_count(settings, {"budget_tokens"}, 1);
  if (type != "enabled") return;
  if (!budget) fail_field("thinking.budget_tokens", "this field is required");
  request.thinking_budget = *budget;
}

void read_output_config(Fields& fields, GenerationRequest& request) {
  const Json* config = fields.object("output_config");
  if (config == nullptr) return;
  Fields settings(*config, "output_config");
  if (const std::optional<std::string> effort = settings.text("effort"))
    set_reasoning_effort(*request.chat, *effort, "output_config.effort");
  const Json* format = settings.object("format");
  if (format == nullptr) return;
  Fields form(*format, "output_config.format");
  form.required_text("type");
  form.word("type", {"json_schema"});
  GrammarSource source;
  source.kind = GrammarSource::Kind::json_schema;
  source.schema = form.required_object("schema");
  request.grammar = std::move(source);
}

/// In OpenAI's shape.
Json messages_tools(Fields& fields) {
  const Json* given = fields.array("tools");
  Json tools = Json::array();
  for (std::size_t i = 0; given != nullptr && i < given->size(); ++i) {
    Fields tool((*given)[i], fmt::format("tools[{}]", i));
    const std::string type = tool.text("type").value_or("custom");
    if (type != "custom") {
      fail_field(tool.path_of("type"),
                 fmt::format("not supported: {}; tools are functions with an input_schema, which the client runs",
                             shown(Json(type))));
    }
    Json function = {{"name", tool.required_text("name")}};
    if (const auto description = tool.text("description")) function["description"] = *description;
    function["parameters"] = tool.required_object("input_schema");
    tools.push_back({{"type", "function"}, {"function", std::move(function)}});
  }
  return normalized_tools(tools, "tools");
}

ToolChoice tool_choice_of(Fields& choice, const Json& tools) {
  choice.required_text("type");
  const std::string type = *choice.word("type", {"auto", "any", "tool", "none"});
  if (type == "any" && tools.is_null()) fail_field("tool_choice", "\"any\" needs tools");
  if (type != "tool") return parse_tool_choice(type == "any" ? "required" : type, tools, "tool_choice");
  std::string name = choice.required_text("name");
  const bool known =
      std::any_of(tools.begin(), tools.end(), [&](const Json& tool) { return tool["function"]["name"] == name; });
  if (!known) fail_type("tool_choice.name", "the name of one of the tools", name);
  return {ToolChoice::Kind::named, std::move(name)};
}

void read_messages_tools(Fields& fields, GenerationRequest& request) {
  Json tools = messages_tools(fields);
  ToolChoice choice;
  if (const Json* given = fields.object("tool_choice")) {
    Fields wanted(*given, "tool_choice");
    request.parallel_tool_calls = !wanted.boolean("disable_parallel_tool_use").value_or(false);
    choice = tool_choice_of(wanted, tools);
  }
  set_tools(request, std::move(tools), std::move(choice), "tool_choice");
}

/// What decides about the prompt, and what has no effect here.
GenerationRequest read_chat(Fields& fields, const RequestDefaults& defaults) {
  if (!defaults.has_chat) throw ApiError(400, "this model has no chat template; use /v1/completions");
  GenerationRequest request;
  request.model = fields.text("model").value_or("");
  const Json& messages = fields.required_array("messages");
  request.chat.emplace();
  request.chat->messages = messages_of_anthropic(fields.find("system"), messages);
  read_prefill(*request.chat, messages.size());
  read_thinking(fields, request);
  read_output_config(fields, request);
  if (const std::optional<GrammarSource> other = read_structure_fields(fields)) {
    if (request.grammar) fail_field("output_config.format", "there is a second field for the form of the reply");
    request.grammar = other;
  }
  read_messages_tools(fields, request);
  fields.object("metadata");
  fields.text("service_tier");
  fields.object("cache_control");
  fields.refuse("container", "tools run at the client");
  if (const Json* servers = fields.array("mcp_servers"); servers != nullptr && !servers->empty())
    fields.refuse("mcp_servers", "tools run at the client");
  return request;
}

}  // namespace

GenerationRequest parse_messages_request(const Json& body, const RequestDefaults& defaults) {
  Fields fields(body);
  GenerationRequest request = read_chat(fields, defaults);
  fields.number("temperature", 0.0, 1.0);
  const std::optional<int> thinking_budget = request.thinking_budget;
  read_sampling_fields(fields, defaults, request);
  if (thinking_budget) request.thinking_budget = thinking_budget;
  if (request.n != 1) fail_field("n", "not supported: a message is one reply");
  refuse_foreign_fields(fields);
  request.stream = fields.boolean("stream").value_or(false);
  if (!fields.has("max_tokens")) fail_field("max_tokens", "this field is required");
  request.sampling.max_tokens = *read_token_count(fields, {"max_tokens"}, 0);
  request.limits_output = request.sampling.max_tokens > 0;
  check_min_tokens(fields, request.sampling);
  if (const Json* stop = fields.array("stop_sequences")) request.stop = parse_stop(*stop, defaults, "stop_sequences");
  request.unknown_fields = fields.unknown();
  return request;
}

GenerationRequest parse_count_tokens_request(const Json& body, const RequestDefaults& defaults) {
  Fields fields(body);
  return read_chat(fields, defaults);
}

}  // namespace sluice
