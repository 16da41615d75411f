#include <string>

#include <gtest/gtest.h>

#include "server/chat_messages.h"
#include "server/openai_chat.h"
#include "server/request_rows.h"

namespace sluice {
namespace {

const Json chat_body = Json::parse(R"({"messages": [{"role": "user", "content": "Hi"}]})");

GenerationRequest parse_chat(const std::string& fields) {
  return parse_chat_request(with_fields(chat_body, fields), test_defaults());
}

/// Fields of a request with two tools, and others.
std::string with_tools(const std::string& others) {
  return R"({"tools": [{"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}},
                       {"type": "function", "function": {"name": "say"}}])" +
         others + "}";
}

TEST(ChatRequest, ThatIsNoObjectIsRefused) {
  try {
    parse_chat_request(Json::array(), test_defaults());
    ADD_FAILURE() << "accepted";
  } catch (const ApiError& error) {
    EXPECT_STREQ(error.what(), "the body must be a JSON object, found an array");
  }
}

TEST(ChatRequest, OfAModelWithoutTemplateIsRefused) {
  RequestDefaults defaults = test_defaults();
  defaults.has_chat = false;
  try {
    parse_chat_request(chat_body, defaults);
    ADD_FAILURE() << "accepted";
  } catch (const ApiError& error) {
    EXPECT_STREQ(error.what(), "this model has no chat template; use /v1/completions");
  }
}

TEST(ChatRequest, WithAFieldOfAWrongFormIsRefusedByItsName) {
  expect_refused(
      parse_chat_request, chat_body,
      {{R"({"logprobs": 1})", "logprobs: expected true or false, found 1", "logprobs"},
       {R"({"logprobs": true, "top_logprobs": 6})", "top_logprobs: expected an integer from 0 to 5, found 6",
        "top_logprobs"},
       {R"({"logprobs": true, "top_logprobs": "1"})", "top_logprobs: expected an integer from 0 to 5, found \"1\"",
        "top_logprobs"},
       {R"({"top_logprobs": 2})", "top_logprobs: only allowed when logprobs is true", "top_logprobs"},
       {R"({"chat_template_kwargs": []})", "chat_template_kwargs: expected an object, found an array",
        "chat_template_kwargs"},
       {R"({"enable_thinking": "no"})", "enable_thinking: expected true or false, found \"no\"", "enable_thinking"},
       {R"({"reasoning_effort": true})", "reasoning_effort: expected a string, found true", "reasoning_effort"},
       {R"({"reasoning_effort": "huge"})",
        R"(reasoning_effort: expected one of "none", "minimal", "low", "medium", "high", "xhigh", "max", found "huge")",
        "reasoning_effort"},
       {R"({"include_reasoning": 0})", "include_reasoning: expected true or false, found 0", "include_reasoning"},
       {R"({"separate_reasoning": 0})", "separate_reasoning: expected true or false, found 0", "separate_reasoning"},
       {R"({"add_generation_prompt": 1})", "add_generation_prompt: expected true or false, found 1",
        "add_generation_prompt"},
       {R"({"continue_final_message": 1})", "continue_final_message: expected true or false, found 1",
        "continue_final_message"},
       {R"({"continue_final_message": true, "add_generation_prompt": true})",
        "continue_final_message: not together with add_generation_prompt", "continue_final_message"},
       {R"({"parallel_tool_calls": "no"})", "parallel_tool_calls: expected true or false, found \"no\"",
        "parallel_tool_calls"},
       {R"({"modalities": "text"})", "modalities: expected an array, found \"text\"", "modalities"},
       {R"({"modalities": ["text", "audio"]})", R"(modalities: expected ["text"], as replies are text, found "audio")",
        "modalities"},
       {R"({"audio": {"voice": "alloy"}})", "audio: not supported: replies are text", "audio"},
       {R"({"prediction": {"type": "content"}})", "prediction: not supported: use speculative decoding of the server",
        "prediction"},
       {R"({"web_search_options": {}})", "web_search_options: not supported: the server does not search",
        "web_search_options"},
       {R"({"functions": []})", "functions: not supported: use tools", "functions"},
       {R"({"function_call": "auto"})", "function_call: not supported: use tool_choice", "function_call"},
       {R"({"echo": true})", "echo: not supported: use continue_final_message, or /v1/completions", "echo"}});
}

TEST(ChatRequest, WithToolsOfAWrongFormIsRefusedByTheirPath) {
  const std::string name_rule =
      R"(tools[0].function.name: expected a name of 1 to 64 letters, digits, "_", "-" or ".")";
  expect_refused(
      parse_chat_request, chat_body,
      {{R"({"tools": {}})", "tools: expected an array of tools, found an object", "tools"},
       {R"({"tools": ["add"]})", "tools[0]: expected an object, found \"add\"", "tools[0]"},
       {R"({"tools": [{"type": "web_search"}]})", R"(tools[0].type: expected one of "function", found "web_search")",
        "tools[0].type"},
       {R"({"tools": [{"type": "function"}]})", "tools[0].function: this field is required", "tools[0].function"},
       {R"({"tools": [{"type": "function", "function": {}}]})", "tools[0].function.name: this field is required",
        "tools[0].function.name"},
       {R"({"tools": [{"type": "function", "function": {"name": "a b"}}]})", name_rule + ", found \"a b\"",
        "tools[0].function.name"},
       {R"({"tools": [{"type": "function", "function": {"name": ""}}]})", name_rule + ", found \"\"",
        "tools[0].function.name"},
       {R"({"tools": [{"type": "function", "function": {"name": "a", "parameters": "none"}}]})",
        "tools[0].function.parameters: expected an object, found \"none\"", "tools[0].function.parameters"},
       {R"({"tools": [{"type": "function", "function": {"name": "a", "description": 1}}]})",
        "tools[0].function.description: expected a string, found 1", "tools[0].function.description"},
       {R"({"tools": [{"type": "function", "function": {"name": "a", "strict": 1}}]})",
        "tools[0].function.strict: expected true or false, found 1", "tools[0].function.strict"},
       {R"({"tools": [{"function": {"name": "a"}}, {"function": {"name": "a"}}]})",
        "tools[1].function.name: \"a\" is declared twice", "tools[1].function.name"}});
}

TEST(ChatRequest, WithAToolChoiceThatCannotBeIsRefused) {
  const std::string forms = R"("auto", "none", "required" or {"type": "function", "function": {"name": ...}})";
  const Json body = Json::parse(R"({"messages": [{"role": "user", "content": "Hi"}]})");
  expect_refused(
      parse_chat_request, body,
      {{R"({"tool_choice": "required"})", "tool_choice: \"required\" needs tools", "tool_choice"},
       {R"({"tool_choice": {"type": "function", "function": {"name": "add"}}})",
        "tool_choice.function.name: expected the name of one of the tools, found \"add\"", "tool_choice.function.name"},
       {with_tools(R"(, "tool_choice": "any")"), "tool_choice: expected " + forms + ", found \"any\"", "tool_choice"},
       {with_tools(R"(, "tool_choice": true)"), "tool_choice: expected " + forms + ", found true", "tool_choice"},
       {with_tools(R"(, "tool_choice": {"type": "custom"})"),
        R"(tool_choice.type: expected one of "function", found "custom")", "tool_choice.type"},
       {with_tools(R"(, "tool_choice": {"type": "function"})"), "tool_choice.function: this field is required",
        "tool_choice.function"},
       {with_tools(R"(, "tool_choice": {"type": "function", "function": {"name": "sub"}})"),
        "tool_choice.function.name: expected the name of one of the tools, found \"sub\"", "tool_choice.function.name"},
       {with_tools(R"(, "tool_choice": "required", "response_format": {"type": "json_object"})"),
        "tool_choice: a reply that must be a tool call cannot have another structure", "tool_choice"}});
}

TEST(ChatRequest, ShowsItsToolsToTheTemplateAsTheyCameButForNulls) {
  const GenerationRequest request = parse_chat(R"({"tools": [{"type": "function", "function": {"description": "Adds.",
      "name": "add", "parameters": {"type": "object", "properties": {"a": {"default": null}}}, "strict": null}},
      {"function": {"name": "say", "x": 1}}]})");
  EXPECT_EQ(request.chat->tools.dump(),
            Json::parse(R"([{"type": "function", "function": {"description": "Adds.", "name": "add",
                "parameters": {"type": "object", "properties": {"a": {"default": null}}}}},
                {"type": "function", "function": {"name": "say", "x": 1}}])")
                .dump());
  EXPECT_EQ(request.tool_choice.kind, ToolChoice::Kind::automatic);
  EXPECT_FALSE(request.grammar);
}

TEST(ChatRequest, WithoutToolsHasNone) {
  for (const char* fields : {R"({})", R"({"tools": []})", R"({"tools": null, "tool_choice": null})",
                             R"({"tools": [], "tool_choice": "auto"})", R"({"tool_choice": "none"})"})
    EXPECT_TRUE(parse_chat(fields).chat->tools.is_null()) << fields;
}

TEST(ChatRequest, ThatWantsNoCallsHidesItsTools) {
  const GenerationRequest request = parse_chat(with_tools(R"(, "tool_choice": "none", "guided_regex": "a")"));
  EXPECT_EQ(request.tool_choice.kind, ToolChoice::Kind::none);
  EXPECT_TRUE(request.chat->tools.is_null());
  EXPECT_EQ(request.grammar->kind, GrammarSource::Kind::regex);
}

TEST(ChatRequest, ThatRequiresACallHasAGrammarOfAllTools) {
  const GenerationRequest request = parse_chat(with_tools(R"(, "tool_choice": "required")"));
  EXPECT_EQ(request.tool_choice.kind, ToolChoice::Kind::required);
  ASSERT_TRUE(request.grammar);
  EXPECT_EQ(request.grammar->kind, GrammarSource::Kind::tool_calls);
  EXPECT_EQ(request.grammar->tools, request.chat->tools);
  EXPECT_TRUE(request.grammar->parallel_tool_calls);
  EXPECT_FALSE(parse_chat(with_tools(R"(, "tool_choice": "required", "parallel_tool_calls": false)"))
                   .grammar->parallel_tool_calls);
}

TEST(ChatRequest, ThatNamesAToolHasAGrammarOfOneCallOfIt) {
  const GenerationRequest request =
      parse_chat(with_tools(R"(, "tool_choice": {"type": "function", "function": {"name": "say"}})"));
  EXPECT_EQ(request.tool_choice.kind, ToolChoice::Kind::named);
  EXPECT_EQ(request.tool_choice.name, "say");
  EXPECT_EQ(request.chat->tools.size(), 2u);
  ASSERT_TRUE(request.grammar);
  EXPECT_EQ(request.grammar->tools, Json::array({request.chat->tools[1]}));
  EXPECT_FALSE(request.grammar->parallel_tool_calls);
}

TEST(ChatRequest, SaysWhetherTheModelIsToThink) {
  const auto variables = [](const char* fields) { return parse_chat(fields).chat->variables; };
  EXPECT_EQ(variables("{}"), Json::object());
  EXPECT_EQ(variables(R"({"enable_thinking": false})"), Json({{"enable_thinking", false}}));
  EXPECT_EQ(variables(R"({"chat_template_kwargs": {"enable_thinking": false, "x": [1]}, "enable_thinking": true})"),
            Json::parse(R"({"enable_thinking": false, "x": [1]})"));
  EXPECT_EQ(variables(R"({"reasoning_effort": "none"})"), Json({{"enable_thinking", false}}));
  EXPECT_EQ(variables(R"({"reasoning_effort": "low"})"),
            Json::parse(R"({"enable_thinking": true, "reasoning_effort": "low"})"));
  EXPECT_EQ(variables(R"({"reasoning_effort": "high", "enable_thinking": false})"),
            Json::parse(R"({"enable_thinking": false, "reasoning_effort": "high"})"));
}

TEST(ChatRequest, BoundsTheVariablesOfTheTemplate) {
  Json fields = {{"chat_template_kwargs", Json::object()}};
  for (int i = 0; i < 65; ++i) fields["chat_template_kwargs"]["x" + std::to_string(i)] = i;
  expect_refused(
      parse_chat_request, chat_body,
      {{fields.dump(), "chat_template_kwargs: at most 64 names are taken, found 65", "chat_template_kwargs"}});
}

TEST(ChatRequest, BeginsANewMessageOrGoesOnWithTheLast) {
  EXPECT_TRUE(parse_chat("{}").chat->add_generation_prompt);
  EXPECT_FALSE(parse_chat(R"({"add_generation_prompt": false})").chat->add_generation_prompt);
  for (const char* fields :
       {R"({"continue_final_message": true})", R"({"continue_final_message": true, "add_generation_prompt": false})"}) {
    EXPECT_TRUE(parse_chat(fields).chat->continue_final_message);
    EXPECT_FALSE(parse_chat(fields).chat->add_generation_prompt);
  }
}

TEST(ChatRequest, CountsAlternativesWhereLogprobsAreWanted) {
  EXPECT_EQ(parse_chat(R"({"logprobs": true})").sampling.top_logprobs, 0);
  EXPECT_EQ(parse_chat(R"({"logprobs": true, "top_logprobs": 5})").sampling.top_logprobs, 5);
  EXPECT_EQ(parse_chat(R"({"logprobs": false, "top_logprobs": 0})").sampling.top_logprobs, -1);
}

TEST(ChatRequest, PrefersTheNewerNameOfItsLength) {
  EXPECT_EQ(parse_chat(R"({"max_tokens": 5, "max_completion_tokens": 3})").sampling.max_tokens, 3);
}

TEST(ChatRequest, ReadsTheRest) {
  const GenerationRequest request = parse_chat(R"({"parallel_tool_calls": false, "include_reasoning": false,
      "separate_reasoning": false, "user": "u", "metadata": {}, "store": true, "service_tier": "auto",
      "prompt_cache_key": "k", "safety_identifier": "s", "verbosity": "low", "modalities": ["text"], "echo": false})");
  EXPECT_FALSE(request.parallel_tool_calls);
  EXPECT_FALSE(request.include_reasoning);
  EXPECT_FALSE(request.separate_reasoning);
  EXPECT_TRUE(request.unknown_fields.empty());
  EXPECT_EQ(request.chat->messages, chat_body["messages"]);
  EXPECT_TRUE(request.prompts.empty());
}

}  // namespace
}  // namespace sluice
