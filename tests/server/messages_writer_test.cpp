#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "server/anthropic_messages.h"
#include "server/event_stream.h"

namespace sluice {
namespace {

std::unique_ptr<ReplyWriter> messages_writer() { return make_messages_writer({}, test_identity); }

Json whole_messages(const ReplyResult& result) { return messages_writer()->whole(result); }

ReplyResult text_result(const std::string& text, ChoiceEnd end) {
  ReplyResult result = full_result();
  result.choices[0].reply = {"", text, {}};
  result.choices[0].end = std::move(end);
  return result;
}

/// A message put together from its stream, as Anthropic's client does it.
Json joined_messages(const std::vector<StreamEvent>& events) {
  Json message;
  std::vector<std::string> inputs;
  for (const auto& [name, data] : events) {
    EXPECT_EQ(data["type"], name);
    if (name == "message_start") message = data["message"];
    if (name == "content_block_start") {
      EXPECT_EQ(data["index"], message["content"].size());
      message["content"].push_back(data["content_block"]);
      inputs.emplace_back();
    }
    if (name == "content_block_delta") {
      Json& block = message["content"][data["index"].get<std::size_t>()];
      const Json& delta = data["delta"];
      if (delta["type"] == "text_delta")
        block["text"] = block["text"].get<std::string>() + delta["text"].get<std::string>();
      if (delta["type"] == "thinking_delta")
        block["thinking"] = block["thinking"].get<std::string>() + delta["thinking"].get<std::string>();
      if (delta["type"] == "signature_delta") block["signature"] = delta["signature"];
      if (delta["type"] == "input_json_delta") inputs.back() += delta["partial_json"].get<std::string>();
    }
    if (name == "content_block_stop" && !inputs.back().empty())
      message["content"].back()["input"] = Json::parse(inputs.back());
    if (name == "message_delta") {
      message.update(data["delta"]);
      message["usage"] = data["usage"];
      message["timings"] = data["timings"];
    }
  }
  return message;
}

TEST(MessagesWriter, ShowsReasoningTextAndCallsAsContentBlocks) {
  const Json content = whole_messages(full_result())["content"];
  EXPECT_EQ(content, Json::parse(R"([
    {"type": "thinking", "thinking": "I think\n\"so\".", "signature": ""},
    {"type": "text", "text": "Grüße, <b>Welt</b>\\"},
    {"type": "tool_use", "id": "toolu_aaaa", "name": "get_weather", "input": {"city": "Graz"}},
    {"type": "tool_use", "id": "toolu_bbbb", "name": "now", "input": {}}])"));
}

TEST(MessagesWriter, StreamJoinsToTheWholeMessage) {
  const auto events = parse_events(written_stream(*messages_writer(), full_deltas(), full_result()));
  EXPECT_EQ(joined_messages(events), whole_messages(full_result()));
}

TEST(MessagesWriter, StreamOpensAndClosesEachBlockInTurn) {
  ReplyResult result = full_result();
  result.choices[0].reply.tool_calls.pop_back();
  std::vector<ReplyDelta> deltas = full_deltas();
  deltas.back().tool_calls.pop_back();
  EXPECT_EQ(names_of(parse_events(written_stream(*messages_writer(), deltas, result))),
            (std::vector<std::string>{"message_start", "content_block_start", "content_block_delta",
                                      "content_block_delta", "content_block_delta", "content_block_stop",
                                      "content_block_start", "content_block_delta", "content_block_delta",
                                      "content_block_stop", "content_block_start", "content_block_delta",
                                      "content_block_delta", "content_block_stop", "message_delta", "message_stop"}));
}

TEST(MessagesWriter, StreamBeginsWithTheLengthOfThePrompt) {
  const auto events = parse_events(written_stream(*messages_writer(), full_deltas(), full_result()));
  EXPECT_EQ(events.front().data["message"]["usage"]["input_tokens"], 20);
}

TEST(MessagesWriter, WhatFollowsACallInTheSameDeltaComesAfterIt) {
  std::vector<ReplyDelta> deltas = {{"", "", {{0, "call_aaaa", "get_weather", R"({"city":)"}}},
                                    {"", "after", {{0, "", "", R"("Graz"})"}}}};
  const Json message = joined_messages(parse_events(written_stream(*messages_writer(), deltas, full_result())));
  ASSERT_EQ(message["content"].size(), 2u);
  EXPECT_EQ(message["content"][0]["input"], Json::parse(R"({"city": "Graz"})"));
  EXPECT_EQ(message["content"][1]["text"], "after");
}

TEST(MessagesWriter, StopReasonsHaveAnthropicsWords) {
  using Reason = ChoiceEnd::Reason;
  EXPECT_EQ(whole_messages(text_result("x", {0, Reason::stop, {}, {}}))["stop_reason"], "end_turn");
  EXPECT_EQ(whole_messages(text_result("x", {0, Reason::length, {}, {}}))["stop_reason"], "max_tokens");
  EXPECT_EQ(whole_messages(full_result())["stop_reason"], "tool_use");
  const Json stopped = whole_messages(text_result("x", {0, Reason::stop, "END", {}}));
  EXPECT_EQ(stopped["stop_reason"], "stop_sequence");
  EXPECT_EQ(stopped["stop_sequence"], "END");
}

TEST(MessagesWriter, InputTokensLeaveOutThoseReadFromTheCache) {
  const Json usage = whole_messages(full_result())["usage"];
  EXPECT_EQ(usage["input_tokens"], 12);
  EXPECT_EQ(usage["cache_read_input_tokens"], 8);
  EXPECT_EQ(usage["output_tokens"], 12);
  EXPECT_EQ(usage["output_tokens_details"]["thinking_tokens"], 5);
}

TEST(MessagesWriter, AnEmptyReplyHasNoBlocks) {
  const ReplyResult result = text_result("", {});
  EXPECT_EQ(whole_messages(result)["content"], Json::array());
  EXPECT_EQ(joined_messages(parse_events(written_stream(*messages_writer(), {}, result))), whole_messages(result));
}

TEST(MessagesWriter, AStreamThatBreaksOffEndsWithAnErrorEvent) {
  std::string out;
  messages_writer()->fail(ApiError(503, "the server is shutting down"), out);
  const auto events = parse_events(out);
  ASSERT_EQ(names_of(events), std::vector<std::string>{"error"});
  EXPECT_EQ(events[0].data, Json::parse(R"({"type": "error", "error": {"type": "overloaded_error",
    "message": "the server is shutting down", "param": null, "code": null}})"));
}

TEST(MessagesWriter, PingsAreEvents) {
  std::string out;
  messages_writer()->ping(out);
  EXPECT_EQ(out, "event: ping\ndata: {\"type\":\"ping\"}\n\n");
}

TEST(AnthropicError, StatusesHaveAnthropicsTypes) {
  const std::vector<std::pair<int, std::string>> types = {
      {400, "invalid_request_error"}, {401, "authentication_error"},
      {403, "permission_error"},      {404, "not_found_error"},
      {408, "timeout_error"},         {413, "invalid_request_error"},
      {429, "rate_limit_error"},      {500, "api_error"},
      {503, "overloaded_error"}};
  for (const auto& [status, type] : types)
    EXPECT_EQ(anthropic_error_json(ApiError(status, "x"))["error"]["type"], type) << status;
}

TEST(AnthropicError, KeepsTheFieldAtFault) {
  ApiError error(400, "max_tokens: this field is required");
  error.with_param("max_tokens").with_code("missing");
  EXPECT_EQ(anthropic_error_json(error), Json::parse(R"({"type": "error", "error": {"type": "invalid_request_error",
    "message": "max_tokens: this field is required", "param": "max_tokens", "code": "missing"}})"));
}

}  // namespace
}  // namespace sluice
