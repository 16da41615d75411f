#include "server/chat_messages.h"

#include <gtest/gtest.h>

#include "server/openai_chat.h"
#include "server/request_rows.h"

namespace sluice {
namespace {

const Json chat_list_body = Json::parse(R"({"messages": [{"role": "user", "content": "Hi"}]})");

Json normalized(const std::string& messages) { return normalized_messages(Json::parse(messages), "messages"); }

TEST(ChatMessages, OfAWrongFormAreRefusedByTheirPath) {
  expect_refused(
      parse_chat_request, chat_list_body,
      {{R"({"messages": null})", "messages: this field is required", "messages"},
       {R"({"messages": "Hi"})", "messages: expected an array, found \"Hi\"", "messages"},
       {R"({"messages": []})", "messages: at least one message is needed", "messages"},
       {R"({"messages": ["Hi"]})", "messages[0]: expected an object, found \"Hi\"", "messages[0]"},
       {R"({"messages": [{"content": "Hi"}]})", "messages[0].role: this field is required", "messages[0].role"},
       {R"({"messages": [{"role": 1, "content": "Hi"}]})", "messages[0].role: expected a string, found 1",
        "messages[0].role"},
       {R"({"messages": [{"role": "bot", "content": "Hi"}]})",
        R"(messages[0].role: expected one of "system", "developer", "user", "assistant", "tool", found "bot")",
        "messages[0].role"},
       {R"({"messages": [{"role": "function", "name": "f", "content": "Hi"}]})",
        "messages[0].role: not supported: \"function\"; use \"tool\" with a tool_call_id", "messages[0].role"},
       {R"({"messages": [{"role": "user"}]})", "messages[0].content: this field is required", "messages[0].content"},
       {R"({"messages": [{"role": "tool", "content": null}]})", "messages[0].content: this field is required",
        "messages[0].content"},
       {R"({"messages": [{"role": "user", "content": 5}]})",
        "messages[0].content: expected a string or an array of parts, found 5", "messages[0].content"},
       {R"({"messages": [{"role": "user", "content": [5]}]})", "messages[0].content[0]: expected an object, found 5",
        "messages[0].content[0]"},
       {R"({"messages": [{"role": "user", "content": [{"image": "x"}]}]})",
        "messages[0].content[0].type: this field is required", "messages[0].content[0].type"},
       {R"({"messages": [{"role": "user", "content": [{"type": "text"}]}]})",
        "messages[0].content[0].text: this field is required", "messages[0].content[0].text"},
       {R"({"messages": [{"role": "user", "content": [{"type": "text", "text": 5}]}]})",
        "messages[0].content[0].text: expected a string, found 5", "messages[0].content[0].text"},
       {R"({"messages": [{"role": "user", "content": [{"type": "smell"}]}]})",
        "messages[0].content[0].type: expected \"text\", found \"smell\"", "messages[0].content[0].type"},
       {R"({"messages": [{"role": "user", "content": "Hi", "name": 5}]})",
        "messages[0].name: expected a string, found 5", "messages[0].name"},
       {R"({"messages": [{"role": "tool", "content": "Hi", "tool_call_id": 5}]})",
        "messages[0].tool_call_id: expected a string, found 5", "messages[0].tool_call_id"},
       {R"({"messages": [{"role": "assistant", "reasoning_content": 5}]})",
        "messages[0].reasoning_content: expected a string, found 5", "messages[0].reasoning_content"},
       {R"({"messages": [{"role": "assistant", "reasoning": []}]})",
        "messages[0].reasoning: expected a string, found an array", "messages[0].reasoning"},
       {R"({"messages": [{"role": "assistant", "function_call": {"name": "f"}}]})",
        "messages[0].function_call: not supported: use tool_calls", "messages[0].function_call"},
       {R"({"messages": [{"role": "assistant", "audio": {"id": "a"}}]})",
        "messages[0].audio: not supported: this build takes text only", "messages[0].audio"}});
}

TEST(ChatMessages, WithPartsThatAreNoTextAreRefusedByThePart) {
  for (const char* type : {"image_url", "input_image", "image", "video_url", "input_video", "video", "input_audio",
                           "audio_url", "audio", "file", "input_file"}) {
    expect_refused(parse_chat_request, chat_list_body,
                   {{std::string(R"({"messages": [{"role": "user", "content": [{"type": "text", "text": "See"},
                                    {"type": ")") +
                         type + R"("}]}]})",
                     std::string("messages[0].content[1]: a part of type \"") + type +
                         "\" is not supported: this build takes text only, no pictures, films, audio or files",
                     "messages[0].content[1]"}});
  }
}

TEST(ChatMessages, WithToolCallsOfAWrongFormAreRefusedByTheirPath) {
  const std::string place = "messages[0].tool_calls";
  const auto message = [](const std::string& calls) {
    return R"({"messages": [{"role": "assistant", "tool_calls": )" + calls + "}]}";
  };
  expect_refused(
      parse_chat_request, chat_list_body,
      {{message(R"({})"), place + ": expected an array, found an object", place},
       {message(R"([5])"), place + "[0]: expected an object, found 5", place + "[0]"},
       {message(R"([{"type": "custom"}])"), place + R"([0].type: expected one of "function", found "custom")",
        place + "[0].type"},
       {message(R"([{"id": "a"}])"), place + "[0].function: this field is required", place + "[0].function"},
       {message(R"([{"id": 5, "function": {"name": "f"}}])"), place + "[0].id: expected a string, found 5",
        place + "[0].id"},
       {message(R"([{"function": {"arguments": "{}"}}])"), place + "[0].function.name: this field is required",
        place + "[0].function.name"},
       {message(R"([{"function": {"name": ""}}])"),
        place + "[0].function.name: expected a string that is not empty, found \"\"", place + "[0].function.name"},
       {message(R"([{"function": {"name": "f", "arguments": 5}}])"),
        place + "[0].function.arguments: expected a JSON object as text, found 5", place + "[0].function.arguments"},
       {message(R"([{"function": {"name": "f", "arguments": "[1]"}}])"),
        place + "[0].function.arguments: expected a JSON object as text, found \"[1]\"",
        place + "[0].function.arguments"}});
}

TEST(ChatMessages, WithArgumentsThatAreNoJsonAreRefused) {
  try {
    normalized(R"([{"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "{\"a\": "}}]}])");
    ADD_FAILURE() << "accepted";
  } catch (const ApiError& error) {
    EXPECT_EQ(error.status(), 400);
    EXPECT_TRUE(std::string(error.what()).starts_with("messages[0].tool_calls[0].function.arguments: not valid JSON"));
    EXPECT_EQ(error.json()["error"]["param"], "messages[0].tool_calls[0].function.arguments");
  }
}

TEST(ChatMessages, WithMoreEntriesThanAreTakenAreRefused) {
  Json messages = Json::array();
  for (int i = 0; i < 16385; ++i) messages.push_back({{"role", "user"}, {"content", "a"}});
  try {
    normalized_messages(messages, "messages");
    ADD_FAILURE() << "accepted";
  } catch (const ApiError& error) {
    EXPECT_STREQ(error.what(), "messages: at most 16384 messages are taken, found 16385");
  }
}

TEST(ChatMessages, KeepRolesTextsAndNames) {
  EXPECT_EQ(normalized(R"([{"role": "system", "content": "S"}, {"role": "user", "content": "U", "name": "Ann"},
                           {"role": "assistant", "content": "A"}, {"role": "tool", "content": "T", "tool_call_id": "c"}])"),
            Json::parse(R"([{"role": "system", "content": "S"}, {"role": "user", "content": "U", "name": "Ann"},
                            {"role": "assistant", "content": "A"},
                            {"role": "tool", "content": "T", "tool_call_id": "c"}])"));
}

TEST(ChatMessages, OfDevelopersAreSystemMessages) {
  EXPECT_EQ(normalized(R"([{"role": "developer", "content": "Be brief."}])"),
            Json::parse(R"([{"role": "system", "content": "Be brief."}])"));
}

TEST(ChatMessages, HaveTheirPartsJoined) {
  EXPECT_EQ(normalized(R"([{"role": "user", "content": [{"type": "text", "text": "a "}, {"type": "input_text",
                           "text": "b "}, {"type": "output_text", "text": "c "}, {"text": "d"}]},
                           {"role": "assistant", "content": [{"type": "refusal", "refusal": "No."}]},
                           {"role": "user", "content": []}])"),
            Json::parse(R"([{"role": "user", "content": "a b c d"}, {"role": "assistant", "content": "No."},
                            {"role": "user", "content": ""}])"));
}

TEST(ChatMessages, OfTheAssistantNeedNoContent) {
  EXPECT_EQ(normalized(R"([{"role": "assistant", "content": null, "tool_calls": [], "refusal": null,
                            "function_call": null, "audio": null, "annotations": []}])"),
            Json::parse(R"([{"role": "assistant", "content": ""}])"));
}

TEST(ChatMessages, HaveReasoningUnderOneName) {
  const Json expected = Json::parse(R"([{"role": "assistant", "content": "A", "reasoning_content": "R"}])");
  EXPECT_EQ(normalized(R"([{"role": "assistant", "content": "A", "reasoning": "R"}])"), expected);
  EXPECT_EQ(normalized(R"([{"role": "assistant", "content": "A", "reasoning_content": "R", "reasoning": "x"}])"),
            expected);
}

TEST(ChatMessages, HaveArgumentsAsObjects) {
  const auto with_arguments = [](const std::string& arguments) {
    const Json messages = normalized(R"([{"role": "assistant", "tool_calls": [{"id": "c", "type": "function",
                                         "function": {"name": "f")" +
                                     arguments + "}}]}]");
    EXPECT_EQ(messages[0]["tool_calls"][0]["id"], "c");
    EXPECT_EQ(messages[0]["tool_calls"][0]["type"], "function");
    EXPECT_EQ(messages[0]["tool_calls"][0]["function"]["name"], "f");
    return messages[0]["tool_calls"][0]["function"]["arguments"];
  };
  const Json expected = Json::parse(R"({"b": 1, "a": [2]})");
  EXPECT_EQ(with_arguments(R"(, "arguments": "{\"b\": 1, \"a\": [2]}")"), expected);
  EXPECT_EQ(with_arguments(R"(, "arguments": {"b": 1, "a": [2]})"), expected);
  EXPECT_EQ(with_arguments(R"(, "arguments": " ")"), Json::object());
  EXPECT_EQ(with_arguments(""), Json::object());
}

}  // namespace
}  // namespace sluice
