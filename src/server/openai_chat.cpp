#include "server/openai_chat.h"

#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "server/api_error.h"
#include "server/chat_messages.h"
#include "server/fields.h"
#include "server/sampling_fields.h"
#include "server/structure_fields.h"

namespace sluice {

namespace {

/// The template looks each of them up by name.
constexpr std::size_t most_variables = 64;

void read_variables(Fields& fields, ChatPrompt& chat) {
  if (const Json* variables = fields.object("chat_template_kwargs")) {
    if (variables->size() > most_variables)
      fail_field(fields.path_of("chat_template_kwargs"),
                 fmt::format("at most {} names are taken, found {}", most_variables, variables->size()));
    chat.variables = *variables;
  }
  const auto thinking = fields.boolean("enable_thinking");
  if (thinking && !chat.variables.contains("enable_thinking")) chat.variables["enable_thinking"] = *thinking;
  if (const auto effort = fields.text("reasoning_effort"))
    set_reasoning_effort(chat, *effort, fields.path_of("reasoning_effort"));
}

void read_chat(Fields& fields, const RequestDefaults& defaults, GenerationRequest& request) {
  const Json& messages = fields.required_array("messages");
  if (!defaults.has_chat)
    throw ApiError(400, "this model has no chat template; use /v1/completions").with_param("messages");
  ChatPrompt& chat = request.chat.emplace();
  chat.messages = normalized_messages(messages, fields.path_of("messages"));
  read_variables(fields, chat);
  const auto adds = fields.boolean("add_generation_prompt");
  chat.continue_final_message = fields.boolean("continue_final_message").value_or(false);
  if (chat.continue_final_message && adds.value_or(false))
    fail_field(fields.path_of("continue_final_message"), "not together with add_generation_prompt");
  chat.add_generation_prompt = adds.value_or(!chat.continue_final_message);
  request.separate_reasoning = fields.boolean("separate_reasoning").value_or(true);
  request.include_reasoning = fields.boolean("include_reasoning").value_or(true);
}

void read_tools(Fields& fields, GenerationRequest& request) {
  fields.refuse("functions", "use tools");
  fields.refuse("function_call", "use tool_choice");
  request.parallel_tool_calls = fields.boolean("parallel_tool_calls").value_or(true);
  Json tools;
  if (const Json* given = fields.find("tools")) tools = normalized_tools(*given, fields.path_of("tools"));
  ToolChoice choice;
  const std::string path = fields.path_of("tool_choice");
  if (const Json* given = fields.find("tool_choice")) choice = parse_tool_choice(*given, tools, path);
  set_tools(request, std::move(tools), std::move(choice), path);
}

void read_logprobs(Fields& fields, const RequestDefaults& defaults, SamplingParams& sampling) {
  const bool wanted = fields.boolean("logprobs").value_or(false);
  const auto count = fields.integer("top_logprobs", 0, defaults.most_logprobs);
  if (count.value_or(0) > 0 && !wanted)
    fail_field(fields.path_of("top_logprobs"), "only allowed when logprobs is true");
  sampling.top_logprobs = wanted ? static_cast<int>(count.value_or(0)) : -1;
}

void refuse_unsupported(Fields& fields, int n) {
  if (const auto count = fields.integer("best_of", 1, INT64_MAX); count && *count != n)
    fields.refuse("best_of", "every choice is returned; best_of must be n");
  if (fields.boolean("echo").value_or(false)) fields.refuse("echo", "use continue_final_message, or /v1/completions");
  fields.refuse("audio", "replies are text");
  fields.refuse("prediction", "use speculative decoding of the server");
  fields.refuse("web_search_options", "the server does not search");
  fields.refuse("suffix", "nothing can be put after a reply");
  if (const Json* modalities = fields.array("modalities"))
    for (const Json& modality : *modalities)
      if (modality != "text") fail_type(fields.path_of("modalities"), "[\"text\"], as replies are text", modality);
}

/// OpenAI's fields that are of no use here, and those whose only possible effect comes about anyway.
void ignore_useless(Fields& fields) {
  for (const char* key :
       {"user", "metadata", "store", "service_tier", "prompt_cache_key", "prompt_cache_retention", "safety_identifier",
        "verbosity", "add_special_tokens", "spaces_between_special_tokens", "chat_template_content_format"})
    fields.ignore(key);
}

}  // namespace

GenerationRequest parse_chat_request(const Json& body, const RequestDefaults& defaults) {
  Fields fields(body);
  GenerationRequest request;
  request.model = fields.text("model").value_or("");
  refuse_foreign_fields(fields);
  read_chat(fields, defaults, request);
  read_sampling_fields(fields, defaults, request);
  if (const auto count = read_token_count(fields, {"max_completion_tokens", "max_tokens"}, 1))
    request.sampling.max_tokens = *count;
  check_min_tokens(fields, request.sampling);
  read_logprobs(fields, defaults, request.sampling);
  read_stream_fields(fields, request);
  request.grammar = read_structure_fields(fields);
  read_tools(fields, request);
  refuse_unsupported(fields, request.n);
  ignore_useless(fields);
  for (std::string& name : fields.unknown()) request.unknown_fields.push_back(std::move(name));
  return request;
}

}  // namespace sluice
