#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "server/openai_responses.h"
#include "server/request_rows.h"

namespace sluice {
namespace {

const Json responses_body = {{"input", "Hello"}};
const std::string responses_tools =
    R"("tools": [{"type": "function", "name": "add", "parameters": {"type": "object"}}, {"type": "function", "name": "now"}])";

GenerationRequest parse_responses(const std::string& fields) {
  return parse_responses_request(with_fields(responses_body, fields), test_defaults());
}

Json responses_given(const std::string& input) { return parse_responses(R"({"input": )" + input + "}").chat->messages; }

TEST(ResponsesRequest, ATextIsAMessageOfTheUser) {
  EXPECT_EQ(responses_given(R"("Hello")"), Json::parse(R"([{"role": "user", "content": "Hello"}])"));
}

TEST(ResponsesRequest, InstructionsAndTheFirstSystemMessagesAreOne) {
  const auto request =
      parse_responses(R"({"instructions": "Be brief.", "input": [{"role": "developer", "content": "Be kind."},
    {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hel"}, {"type": "input_text", "text": "lo"}]}]})");
  EXPECT_EQ(request.chat->messages, Json::parse(R"([{"role": "system", "content": "Be brief.\n\nBe kind."},
    {"role": "user", "content": "Hello"}])"));
}

TEST(ResponsesRequest, ItemsOfATurnAreOneMessageOfTheAssistant) {
  EXPECT_EQ(responses_given(R"([{"role": "user", "content": "1 + 2?"},
      {"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": "I call add."}]},
      {"type": "message", "role": "assistant", "id": "msg_1", "status": "completed",
       "content": [{"type": "output_text", "text": "A moment.", "annotations": []}]},
      {"type": "function_call", "call_id": "call_1", "name": "add", "arguments": "{\"a\": 1, \"b\": 2}"},
      {"type": "function_call", "call_id": "call_2", "name": "now", "arguments": "{}"},
      {"type": "function_call_output", "call_id": "call_1", "output": "3"},
      {"type": "function_call_output", "call_id": "call_2", "output": [{"type": "input_text", "text": "noon"}]}])"),
            Json::parse(R"([{"role": "user", "content": "1 + 2?"},
      {"role": "assistant", "content": "A moment.", "reasoning_content": "I call add.", "tool_calls": [
        {"id": "call_1", "type": "function", "function": {"name": "add", "arguments": {"a": 1, "b": 2}}},
        {"id": "call_2", "type": "function", "function": {"name": "now", "arguments": {}}}]},
      {"role": "tool", "tool_call_id": "call_1", "content": "3"},
      {"role": "tool", "tool_call_id": "call_2", "content": "noon"}])"));
}

TEST(ResponsesRequest, NoArgumentsAreAnEmptyObject) {
  const Json messages =
      responses_given(R"([{"type": "function_call", "call_id": "c", "name": "now", "arguments": ""}])");
  EXPECT_EQ(messages[0]["tool_calls"][0]["function"]["arguments"], Json::object());
}

TEST(ResponsesRequest, ReasoningBelongsToTheAssistantsNextMessage) {
  EXPECT_EQ(responses_given(R"([{"type": "message", "role": "assistant", "content": "One."},
      {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Next."}]},
      {"type": "message", "role": "assistant", "content": "Two."}, {"role": "user", "content": "Go on."}])"),
            Json::parse(R"([{"role": "assistant", "content": "One."},
      {"role": "assistant", "content": "Two.", "reasoning_content": "Next."}, {"role": "user", "content": "Go on."}])"));
}

TEST(ResponsesRequest, ReadsSampling) {
  const auto request =
      parse_responses(R"({"temperature": 0.5, "top_p": 0.25, "max_output_tokens": 7, "top_k": 3, "stream": true})");
  EXPECT_EQ(request.sampling.temperature, 0.5f);
  EXPECT_EQ(request.sampling.top_p, 0.25f);
  EXPECT_EQ(request.sampling.max_tokens, 7);
  EXPECT_EQ(request.sampling.top_k, 3);
  EXPECT_TRUE(request.stream);
}

TEST(ResponsesRequest, KeepsTheServersDefaults) {
  const auto request = parse_responses("{}");
  EXPECT_EQ(request.sampling.temperature, 0.6f);
  EXPECT_EQ(request.sampling.max_tokens, 0);
  EXPECT_EQ(request.sampling.top_logprobs, -1);
  EXPECT_FALSE(request.stream);
  EXPECT_FALSE(request.grammar);
  EXPECT_EQ(request.n, 1);
}

TEST(ResponsesRequest, LogprobsAreAskedForByIncludeOrByACount) {
  EXPECT_EQ(parse_responses(R"({"include": ["message.output_text.logprobs"]})").sampling.top_logprobs, 0);
  EXPECT_EQ(parse_responses(R"({"top_logprobs": 2})").sampling.top_logprobs, 2);
  EXPECT_EQ(parse_responses(R"({"include": ["reasoning.encrypted_content"], "top_logprobs": 0})").sampling.top_logprobs,
            -1);
}

TEST(ResponsesRequest, EffortTurnsThinkingOnAndOff) {
  EXPECT_EQ(parse_responses(R"({"reasoning": {"effort": "none"}})").chat->variables["enable_thinking"], false);
  EXPECT_EQ(
      parse_responses(R"({"reasoning": {"effort": "low", "summary": "auto"}})").chat->variables["enable_thinking"],
      true);
  EXPECT_EQ(parse_responses(R"({"reasoning": {}})").chat->variables, Json::object());
}

TEST(ResponsesRequest, ToolsGetTheShapeOfChats) {
  EXPECT_EQ(parse_responses("{" + responses_tools + "}").chat->tools, Json::parse(R"([
    {"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}},
    {"type": "function", "function": {"name": "now"}}])"));
}

TEST(ResponsesRequest, ToolChoiceNamesATool) {
  const auto request =
      parse_responses("{" + responses_tools + R"(, "tool_choice": {"type": "function", "name": "now"}})");
  EXPECT_EQ(request.tool_choice.kind, ToolChoice::Kind::named);
  EXPECT_EQ(request.tool_choice.name, "now");
  ASSERT_TRUE(request.grammar);
  EXPECT_EQ(request.grammar->tools.size(), 1u);
}

TEST(ResponsesRequest, AllowedToolsAreTheOnlyOnesShown) {
  const auto request =
      parse_responses("{" + responses_tools + R"(, "tool_choice": {"type": "allowed_tools", "mode": "required",
    "tools": [{"type": "function", "name": "now"}]}})");
  EXPECT_EQ(request.tool_choice.kind, ToolChoice::Kind::required);
  ASSERT_EQ(request.chat->tools.size(), 1u);
  EXPECT_EQ(request.chat->tools[0]["function"]["name"], "now");
}

TEST(ResponsesRequest, FormatsBecomeGrammars) {
  EXPECT_EQ(parse_responses(R"({"text": {"format": {"type": "json_object"}}})").grammar->kind,
            GrammarSource::Kind::json_object);
  const auto request = parse_responses(
      R"({"text": {"format": {"type": "json_schema", "name": "a", "strict": true, "schema": {"type": "object"}}}})");
  EXPECT_EQ(request.grammar->kind, GrammarSource::Kind::json_schema);
  EXPECT_EQ(request.grammar->schema, Json::parse(R"({"type": "object"})"));
  EXPECT_FALSE(parse_responses(R"({"text": {"format": {"type": "text"}, "verbosity": "low"}})").grammar);
}

TEST(ResponsesRequest, TakesWhatHasNoEffectHere) {
  const auto request =
      parse_responses(R"({"store": true, "metadata": {"a": "b"}, "truncation": "auto", "background": false,
    "user": "u", "service_tier": "flex", "prompt_cache_key": "k", "safety_identifier": "s", "max_tool_calls": 3,
    "stream_options": {"include_obfuscation": false}, "previous_response_id": null})");
  EXPECT_EQ(request.unknown_fields, std::vector<std::string>{});
}

TEST(ResponsesRequest, NotesUnknownFields) {
  EXPECT_EQ(parse_responses(R"({"frobnicate": 1})").unknown_fields, std::vector<std::string>{"frobnicate"});
}

TEST(ResponsesRequest, RefusesWhatItCannotDo) {
  expect_refused(
      parse_responses_request, responses_body,
      {{R"({"previous_response_id": "resp_1"})",
        "previous_response_id: not supported: nothing is stored here; send the whole conversation as input",
        "previous_response_id"},
       {R"({"conversation": "conv_1"})",
        "conversation: not supported: nothing is stored here; send the whole conversation as input", "conversation"},
       {R"({"prompt": {"id": "p"}})",
        "prompt: not supported: there are no stored prompts here; send instructions and input", "prompt"},
       {R"({"background": true})", "background: not supported: replies are not kept for later", "background"},
       {R"({"n": 2})", "n: not supported: a response is one reply", "n"},
       {R"({"tools": [{"type": "web_search"}]})",
        "tools[0].type: not supported: \"web_search\"; tools are functions, which the client runs", "tools[0].type"},
       {R"({"input": [{"type": "item_reference", "id": "msg_1"}]})",
        "input[0].type: not supported: \"item_reference\"; nothing is stored here, so items must be sent whole",
        "input[0].type"},
       {R"({"input": [{"type": "web_search_call"}]})",
        "input[0].type: not supported: \"web_search_call\"; items are \"message\", \"reasoning\", \"function_call\" "
        "and \"function_call_output\"",
        "input[0].type"},
       {R"({"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "data:"}]}]})",
        "input[0].content[0].type: not supported: \"input_image\"; this server is given text, as \"input_text\" or "
        "\"output_text\"",
        "input[0].content[0].type"}});
}

TEST(ResponsesRequest, RefusesWhatIsMissing) {
  const std::vector<std::pair<std::string, std::string>> rows = {
      {R"({"input": null})", "input"},
      {R"({"input": [{"content": "x"}]})", "input[0].type"},
      {R"({"input": [{"type": "message", "content": "x"}]})", "input[0].role"},
      {R"({"input": [{"role": "user"}]})", "input[0].content"},
      {R"({"input": [{"role": "user", "content": [{"text": "x"}]}]})", "input[0].content[0].type"},
      {R"({"input": [{"role": "user", "content": [{"type": "input_text"}]}]})", "input[0].content[0].text"},
      {R"({"input": [{"type": "function_call", "name": "f", "arguments": "{}"}]})", "input[0].call_id"},
      {R"({"input": [{"type": "function_call", "call_id": "c", "arguments": "{}"}]})", "input[0].name"},
      {R"({"input": [{"type": "function_call", "call_id": "c", "name": "f"}]})", "input[0].arguments"},
      {R"({"input": [{"type": "function_call_output", "output": "x"}]})", "input[0].call_id"},
      {R"({"input": [{"type": "function_call_output", "call_id": "c"}]})", "input[0].output"},
      {R"({"tools": [{"name": "f"}]})", "tools[0].type"},
      {R"({"tools": [{"type": "function"}]})", "tools[0].name"},
      {R"({"tool_choice": {"name": "f"}})", "tool_choice.type"},
      {R"({"tool_choice": {"type": "function"}})", "tool_choice.name"},
      {R"({"tool_choice": {"type": "allowed_tools", "mode": "auto"}})", "tool_choice.tools"},
      {R"({"text": {"format": {}}})", "text.format.type"},
      {R"({"text": {"format": {"type": "json_schema", "name": "a"}}})", "text.format.schema"},
      {R"({"text": {"format": {"type": "json_schema", "schema": {}}}})", "text.format.name"}};
  for (const auto& [fields, param] : rows)
    expect_refused(parse_responses_request, responses_body, {{fields, param + ": this field is required", param}});
}

TEST(ResponsesRequest, RefusesWrongTypesAndRanges) {
  expect_refused(
      parse_responses_request, responses_body,
      {{R"({"input": 5})", "input: expected a string or a list of items, found 5", "input"},
       {R"({"input": []})", "input: expected at least one item, found none", "input"},
       {R"({"input": ["x"]})", "input[0]: expected an object, found \"x\"", "input[0]"},
       {R"({"input": [{"role": "tool", "content": "x"}]})",
        R"(input[0].role: expected one of "user", "assistant", "system", "developer", found "tool")", "input[0].role"},
       {R"({"input": [{"role": "user", "content": 1}]})",
        "input[0].content: expected a string or a list of parts, found 1", "input[0].content"},
       {R"({"input": [{"type": "reasoning", "summary": "x"}]})", "input[0].summary: expected an array, found \"x\"",
        "input[0].summary"},
       {R"({"input": [{"type": "function_call", "call_id": "c", "name": "f", "arguments": "[1]"}]})",
        "input[0].arguments: expected a JSON object, written as a string, found \"[1]\"", "input[0].arguments"},
       {R"({"input": [{"type": "function_call", "call_id": "c", "name": "f", "arguments": "{"}]})",
        "input[0].arguments: expected a JSON object, written as a string, found \"{\"", "input[0].arguments"},
       {R"({"instructions": ["x"]})", "instructions: expected a string, found an array", "instructions"},
       {R"({"model": 1})", "model: expected a string, found 1", "model"},
       {R"({"stream": "yes"})", "stream: expected true or false, found \"yes\"", "stream"},
       {R"({"store": 1})", "store: expected true or false, found 1", "store"},
       {R"({"metadata": []})", "metadata: expected an object, found an array", "metadata"},
       {R"({"truncation": "middle"})", R"(truncation: expected one of "auto", "disabled", found "middle")",
        "truncation"},
       {R"({"max_output_tokens": 0})", "max_output_tokens: expected an integer of 1 or more, found 0",
        "max_output_tokens"},
       {R"({"temperature": 2.5})", "temperature: expected a number from 0 to 2, found 2.5", "temperature"},
       {R"({"top_p": 0})", "top_p: expected a number above 0, up to 1, found 0", "top_p"},
       {R"({"top_logprobs": 6})", "top_logprobs: expected an integer from 0 to 5, found 6", "top_logprobs"},
       {R"({"include": [1]})", "include[0]: expected a string, found 1", "include[0]"},
       {R"({"reasoning": "low"})", "reasoning: expected an object, found \"low\"", "reasoning"},
       {R"({"reasoning": {"effort": "lots"}})",
        R"(reasoning.effort: expected one of "none", "minimal", "low", "medium", "high", "xhigh", "max", found "lots")",
        "reasoning.effort"},
       {R"({"reasoning": {"summary": "long"}})",
        R"(reasoning.summary: expected one of "auto", "concise", "detailed", found "long")", "reasoning.summary"},
       {R"({"text": {"verbosity": "none"}})",
        R"(text.verbosity: expected one of "low", "medium", "high", found "none")", "text.verbosity"},
       {R"({"text": {"format": {"type": "xml"}}})",
        R"(text.format.type: expected one of "text", "json_object", "json_schema", found "xml")", "text.format.type"},
       {R"({"tools": {}})", "tools: expected an array, found an object", "tools"},
       {R"({"tools": [{"type": "function", "name": "f", "parameters": []}]})",
        "tools[0].parameters: expected an object, found an array", "tools[0].parameters"},
       {R"({"tool_choice": "required"})", "tool_choice: \"required\" needs tools", "tool_choice"},
       {R"({"tool_choice": {"type": "function", "name": "f"}})",
        "tool_choice.name: expected the name of one of the tools, found \"f\"", "tool_choice.name"},
       {R"({"tool_choice": {"type": "allowed_tools", "tools": []}})",
        "tool_choice.tools: expected at least one tool, found none", "tool_choice.tools"},
       {R"({"tool_choice": {"type": "file_search"}})",
        R"(tool_choice.type: expected one of "function", "allowed_tools", found "file_search")", "tool_choice.type"},
       {R"({"parallel_tool_calls": 1})", "parallel_tool_calls: expected true or false, found 1",
        "parallel_tool_calls"}});
}

TEST(ResponsesRequest, RefusesTwoForms) {
  expect_refused(
      parse_responses_request, responses_body,
      {{R"({"guided_regex": "a", "text": {"format": {"type": "json_object"}}})",
        "text.format: there is a second field for the form of the reply; send one of them", "text.format"},
       {"{" + responses_tools + R"(, "tool_choice": "required", "text": {"format": {"type": "json_object"}}})",
        "tool_choice: a reply that must be a tool call cannot have another structure", "tool_choice"}});
}

TEST(ResponsesRequest, NeedsAChatTemplate) {
  RequestDefaults defaults = test_defaults();
  defaults.has_chat = false;
  EXPECT_THROW(parse_responses_request(responses_body, defaults), ApiError);
}

}  // namespace
}  // namespace sluice
