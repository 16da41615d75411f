#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "server/anthropic_messages.h"
#include "server/request_rows.h"

namespace sluice {
namespace {

const Json messages_body = {{"max_tokens", 50}, {"messages", {{{"role", "user"}, {"content", "Hello"}}}}};
const std::string messages_tools =
    R"("tools": [{"name": "add", "description": "Adds.", "input_schema": {"type": "object"}},
                 {"type": "custom", "name": "now", "input_schema": {"type": "object"}, "cache_control": {"type": "ephemeral"}}])";

GenerationRequest parse_messages(const std::string& fields) {
  return parse_messages_request(with_fields(messages_body, fields), test_defaults());
}

Json messages_given(const std::string& messages) {
  return parse_messages(R"({"messages": )" + messages + "}").chat->messages;
}

TEST(MessagesRequest, TextsAreMessages) {
  EXPECT_EQ(messages_given(R"([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"},
                            {"role": "user", "content": [{"type": "text", "text": "How "}, {"type": "text", "text": "are you?"}]}])"),
            Json::parse(R"([{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"},
                            {"role": "user", "content": "How are you?"}])"));
}

TEST(MessagesRequest, SystemIsTheFirstMessage) {
  const Json expected = Json::parse(R"({"role": "system", "content": "Be brief.\n\nBe kind."})");
  EXPECT_EQ(parse_messages(R"({"system": "Be brief.\n\nBe kind."})").chat->messages[0], expected);
  EXPECT_EQ(parse_messages(R"({"system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}},
                                 {"type": "text", "text": "Be kind."}]})")
                .chat->messages[0],
            expected);
}

TEST(MessagesRequest, BlocksOfTheAssistantAreOneMessage) {
  EXPECT_EQ(messages_given(R"([{"role": "user", "content": "1 + 2?"},
      {"role": "assistant", "content": [{"type": "thinking", "thinking": "I call add.", "signature": ""},
        {"type": "redacted_thinking", "data": "x"}, {"type": "text", "text": "A moment."},
        {"type": "tool_use", "id": "toolu_1", "name": "add", "input": {"a": 1, "b": 2}}]},
      {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_1", "content": "3"},
                                   {"type": "text", "text": "Thanks."}]}])"),
            Json::parse(R"([{"role": "user", "content": "1 + 2?"},
      {"role": "assistant", "content": "A moment.", "reasoning_content": "I call add.", "tool_calls": [
        {"id": "toolu_1", "type": "function", "function": {"name": "add", "arguments": {"a": 1, "b": 2}}}]},
      {"role": "tool", "tool_call_id": "toolu_1", "content": "3"}, {"role": "user", "content": "Thanks."}])"));
}

TEST(MessagesRequest, ResultsOfToolsAreTextsBlocksOrNothing) {
  EXPECT_EQ(messages_given(R"([{"role": "user", "content": [
      {"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]},
      {"type": "tool_result", "tool_use_id": "b"},
      {"type": "tool_result", "tool_use_id": "c", "content": "no such city", "is_error": true}]}])"),
            Json::parse(R"([{"role": "tool", "tool_call_id": "a", "content": "one\ntwo"},
      {"role": "tool", "tool_call_id": "b", "content": ""},
      {"role": "tool", "tool_call_id": "c", "content": "Error: no such city"}])"));
}

TEST(MessagesRequest, AnEmptyTextIsAMessageAllTheSame) {
  EXPECT_EQ(messages_given(R"([{"role": "user", "content": [{"type": "text", "text": ""}]}])"),
            Json::parse(R"([{"role": "user", "content": ""}])"));
}

TEST(MessagesRequest, ALastMessageOfTheAssistantIsGoneOnWith) {
  const auto prefilled =
      parse_messages(R"({"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "He"}]})");
  EXPECT_TRUE(prefilled.chat->continue_final_message);
  EXPECT_FALSE(prefilled.chat->add_generation_prompt);
  const auto plain = parse_messages("{}");
  EXPECT_FALSE(plain.chat->continue_final_message);
  EXPECT_TRUE(plain.chat->add_generation_prompt);
}

TEST(MessagesRequest, ReadsSampling) {
  const auto request = parse_messages(
      R"({"max_tokens": 7, "temperature": 0.5, "top_p": 0.25, "top_k": 3, "stop_sequences": ["a", "b"], "stream": true})");
  EXPECT_EQ(request.sampling.max_tokens, 7);
  EXPECT_EQ(request.sampling.temperature, 0.5f);
  EXPECT_EQ(request.sampling.top_p, 0.25f);
  EXPECT_EQ(request.sampling.top_k, 3);
  EXPECT_EQ(request.stop, (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(request.stream);
  EXPECT_TRUE(request.limits_output);
}

TEST(MessagesRequest, NoTokensAreAskedForByZero) { EXPECT_FALSE(parse_messages(R"({"max_tokens": 0})").limits_output); }

TEST(MessagesRequest, ThinkingIsTurnedOnAndOff) {
  const auto enabled = parse_messages(R"({"thinking": {"type": "enabled", "budget_tokens": 2000}})");
  EXPECT_EQ(enabled.chat->variables["enable_thinking"], true);
  EXPECT_EQ(enabled.thinking_budget, 2000);
  const auto disabled = parse_messages(R"({"thinking": {"type": "disabled"}})");
  EXPECT_EQ(disabled.chat->variables["enable_thinking"], false);
  const auto adaptive = parse_messages(R"({"thinking": {"type": "adaptive"}})");
  EXPECT_EQ(adaptive.chat->variables["enable_thinking"], true);
  EXPECT_FALSE(adaptive.thinking_budget);
  EXPECT_EQ(parse_messages("{}").chat->variables, Json::object());
}

TEST(MessagesRequest, OutputConfigSetsEffortAndForm) {
  const auto request = parse_messages(
      R"({"output_config": {"effort": "low", "format": {"type": "json_schema", "schema": {"type": "object"}}}})");
  EXPECT_EQ(request.chat->variables["reasoning_effort"], "low");
  ASSERT_TRUE(request.grammar);
  EXPECT_EQ(request.grammar->kind, GrammarSource::Kind::json_schema);
  EXPECT_EQ(request.grammar->schema, Json::parse(R"({"type": "object"})"));
}

TEST(MessagesRequest, ToolsGetTheShapeOfChats) {
  EXPECT_EQ(parse_messages("{" + messages_tools + "}").chat->tools, Json::parse(R"([
    {"type": "function", "function": {"name": "add", "description": "Adds.", "parameters": {"type": "object"}}},
    {"type": "function", "function": {"name": "now", "parameters": {"type": "object"}}}])"));
}

TEST(MessagesRequest, ToolChoices) {
  auto choice = [](const std::string& json) {
    return parse_messages("{" + messages_tools + R"(, "tool_choice": )" + json + "}");
  };
  EXPECT_EQ(choice(R"({"type": "auto"})").tool_choice.kind, ToolChoice::Kind::automatic);
  EXPECT_EQ(choice(R"({"type": "any"})").tool_choice.kind, ToolChoice::Kind::required);
  EXPECT_EQ(choice(R"({"type": "none"})").chat->tools, Json());
  const auto named = choice(R"({"type": "tool", "name": "now"})");
  EXPECT_EQ(named.tool_choice.kind, ToolChoice::Kind::named);
  EXPECT_EQ(named.tool_choice.name, "now");
  EXPECT_TRUE(choice(R"({"type": "auto"})").parallel_tool_calls);
  EXPECT_FALSE(choice(R"({"type": "any", "disable_parallel_tool_use": true})").grammar->parallel_tool_calls);
}

TEST(MessagesRequest, TakesWhatHasNoEffectHere) {
  const auto request =
      parse_messages(R"({"metadata": {"user_id": "u"}, "service_tier": "auto", "cache_control": {"type": "ephemeral"},
    "mcp_servers": [], "container": null})");
  EXPECT_EQ(request.unknown_fields, std::vector<std::string>{});
}

TEST(MessagesRequest, NotesUnknownFields) {
  EXPECT_EQ(parse_messages(R"({"frobnicate": 1})").unknown_fields, std::vector<std::string>{"frobnicate"});
}

TEST(MessagesRequest, RefusesWhatItCannotDo) {
  expect_refused(
      parse_messages_request, messages_body,
      {{R"({"n": 2})", "n: not supported: a message is one reply", "n"},
       {R"({"container": "c"})", "container: not supported: tools run at the client", "container"},
       {R"({"mcp_servers": [{"type": "url"}]})", "mcp_servers: not supported: tools run at the client", "mcp_servers"},
       {R"({"tools": [{"type": "web_search_20250305", "name": "web_search"}]})",
        "tools[0].type: not supported: \"web_search_20250305\"; tools are functions with an input_schema, which the "
        "client runs",
        "tools[0].type"},
       {R"({"messages": [{"role": "user", "content": [{"type": "image", "source": {}}]}]})",
        "messages[0].content[0].type: not supported in a user's message: \"image\"; blocks here are \"text\" and "
        "\"tool_result\"",
        "messages[0].content[0].type"},
       {R"({"messages": [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a",
            "content": [{"type": "image"}]}]}]})",
        "messages[0].content[0].content[0].type: not supported in a tool's result: \"image\"; blocks here are \"text\"",
        "messages[0].content[0].content[0].type"},
       {R"({"messages": [{"role": "assistant", "content": [{"type": "server_tool_use"}]}]})",
        "messages[0].content[0].type: not supported in an assistant's message: \"server_tool_use\"; blocks here are "
        "\"text\", \"thinking\", \"redacted_thinking\" and \"tool_use\"",
        "messages[0].content[0].type"},
       {R"({"system": [{"type": "image"}]})",
        "system[0].type: not supported in a system prompt: \"image\"; blocks here are \"text\"", "system[0].type"}});
}

TEST(MessagesRequest, RefusesWhatIsMissing) {
  const std::vector<std::pair<std::string, std::string>> rows = {
      {R"({"max_tokens": null})", "max_tokens"},
      {R"({"messages": null})", "messages"},
      {R"({"messages": [{"content": "x"}]})", "messages[0].role"},
      {R"({"messages": [{"role": "user"}]})", "messages[0].content"},
      {R"({"messages": [{"role": "user", "content": [{"text": "x"}]}]})", "messages[0].content[0].type"},
      {R"({"messages": [{"role": "user", "content": [{"type": "text"}]}]})", "messages[0].content[0].text"},
      {R"({"messages": [{"role": "user", "content": [{"type": "tool_result"}]}]})",
       "messages[0].content[0].tool_use_id"},
      {R"({"messages": [{"role": "assistant", "content": [{"type": "thinking"}]}]})",
       "messages[0].content[0].thinking"},
      {R"({"messages": [{"role": "assistant", "content": [{"type": "tool_use", "name": "f", "input": {}}]}]})",
       "messages[0].content[0].id"},
      {R"({"messages": [{"role": "assistant", "content": [{"type": "tool_use", "id": "a", "input": {}}]}]})",
       "messages[0].content[0].name"},
      {R"({"messages": [{"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f"}]}]})",
       "messages[0].content[0].input"},
      {R"({"tools": [{"input_schema": {}}]})", "tools[0].name"},
      {R"({"tools": [{"name": "f"}]})", "tools[0].input_schema"},
      {R"({"tool_choice": {}})", "tool_choice.type"},
      {R"({"tool_choice": {"type": "tool"}})", "tool_choice.name"},
      {R"({"thinking": {}})", "thinking.type"},
      {R"({"thinking": {"type": "enabled"}})", "thinking.budget_tokens"},
      {R"({"output_config": {"format": {"type": "json_schema"}}})", "output_config.format.schema"}};
  for (const auto& [fields, param] : rows)
    expect_refused(parse_messages_request, messages_body, {{fields, param + ": this field is required", param}});
}

TEST(MessagesRequest, RefusesWrongTypesAndRanges) {
  expect_refused(
      parse_messages_request, messages_body,
      {{R"({"max_tokens": -1})", "max_tokens: expected an integer of 0 or more, found -1", "max_tokens"},
       {R"({"max_tokens": "50"})", "max_tokens: expected an integer of 0 or more, found \"50\"", "max_tokens"},
       {R"({"model": 1})", "model: expected a string, found 1", "model"},
       {R"({"messages": "x"})", "messages: expected an array, found \"x\"", "messages"},
       {R"({"messages": []})", "messages: expected at least one message, found none", "messages"},
       {R"({"messages": ["x"]})", "messages[0]: expected an object, found \"x\"", "messages[0]"},
       {R"({"messages": [{"role": "tool", "content": "x"}]})",
        R"(messages[0].role: expected one of "user", "assistant", "system", found "tool")", "messages[0].role"},
       {R"({"messages": [{"role": "user", "content": 1}]})",
        "messages[0].content: expected a string or a list of blocks, found 1", "messages[0].content"},
       {R"({"messages": [{"role": "user", "content": []}]})",
        "messages[0].content: expected at least one block, found none", "messages[0].content"},
       {R"({"messages": [{"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": "{}"}]}]})",
        "messages[0].content[0].input: expected an object, found \"{}\"", "messages[0].content[0].input"},
       {R"({"messages": [{"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {}}]}]})",
        "messages[0].content: the last message calls tools; their results must follow it", "messages[0].content"},
       {R"({"messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": ""}]})",
        "messages[1].content: the last message, the assistant's, is to be gone on with; it needs text",
        "messages[1].content"},
       {R"({"system": 1})", "system: expected a string or a list of blocks, found 1", "system"},
       {R"({"temperature": 1.5})", "temperature: expected a number from 0 to 1, found 1.5", "temperature"},
       {R"({"top_k": -2})", "top_k: expected an integer from -1 to 2147483647, found -2", "top_k"},
       {R"({"stop_sequences": "x"})", "stop_sequences: expected an array, found \"x\"", "stop_sequences"},
       {R"({"stop_sequences": [""]})", "stop_sequences[0]: expected a string that is not empty, found \"\"",
        "stop_sequences[0]"},
       {R"({"stop_sequences": ["a", "b", "c", "d"]})", "stop_sequences: at most 3 strings are taken, found 4",
        "stop_sequences"},
       {R"({"stream": 1})", "stream: expected true or false, found 1", "stream"},
       {R"({"thinking": {"type": "on"}})",
        R"(thinking.type: expected one of "enabled", "disabled", "adaptive", found "on")", "thinking.type"},
       {R"({"thinking": {"type": "enabled", "budget_tokens": 0}})",
        "thinking.budget_tokens: expected an integer of 1 or more, found 0", "thinking.budget_tokens"},
       {R"({"tools": {}})", "tools: expected an array, found an object", "tools"},
       {R"({"tools": [{"name": "f", "input_schema": "x"}]})", "tools[0].input_schema: expected an object, found \"x\"",
        "tools[0].input_schema"},
       {R"({"tool_choice": "auto"})", "tool_choice: expected an object, found \"auto\"", "tool_choice"},
       {R"({"tool_choice": {"type": "required"}})",
        R"(tool_choice.type: expected one of "auto", "any", "tool", "none", found "required")", "tool_choice.type"},
       {R"({"tool_choice": {"type": "any"}})", "tool_choice: \"any\" needs tools", "tool_choice"},
       {R"({"tool_choice": {"type": "tool", "name": "f"}})",
        "tool_choice.name: expected the name of one of the tools, found \"f\"", "tool_choice.name"},
       {R"({"tool_choice": {"type": "auto", "disable_parallel_tool_use": 1}})",
        "tool_choice.disable_parallel_tool_use: expected true or false, found 1",
        "tool_choice.disable_parallel_tool_use"},
       {R"({"output_config": {"format": {"type": "text", "schema": {}}}})",
        R"(output_config.format.type: expected one of "json_schema", found "text")", "output_config.format.type"},
       {R"({"metadata": "x"})", "metadata: expected an object, found \"x\"", "metadata"}});
}

TEST(CountTokensRequest, NeedsNoMaxTokens) {
  const Json body = Json::parse(R"({"system": "Be brief.", "messages": [{"role": "user", "content": "Hi"}]})");
  EXPECT_EQ(parse_count_tokens_request(body, test_defaults()).chat->messages.size(), 2u);
}

TEST(CountTokensRequest, IsAsStrictAsTheMessage) {
  expect_refused(
      parse_count_tokens_request, messages_body,
      {{R"({"messages": []})", "messages: expected at least one message, found none", "messages"},
       {R"({"tools": [{"name": "f"}]})", "tools[0].input_schema: this field is required", "tools[0].input_schema"}});
}

}  // namespace
}  // namespace sluice
