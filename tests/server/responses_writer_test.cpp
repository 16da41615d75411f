#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "server/event_stream.h"
#include "server/openai_responses.h"

namespace sluice {
namespace {

struct Settings {
  Json body = {{"input", "Hello"}};
  GenerationRequest request;
};

std::unique_ptr<ReplyWriter> responses_writer(const Settings& settings = {}) {
  return make_responses_writer(settings.body, settings.request, test_identity);
}

Json whole_responses(const ReplyResult& result, const Settings& settings = {}) {
  return responses_writer(settings)->whole(result);
}

std::vector<StreamEvent> stream(const std::vector<ReplyDelta>& deltas, const ReplyResult& result) {
  return parse_events(written_stream(*responses_writer(), deltas, result));
}

/// The output put together from the deltas, as clients that show a reply while it comes do it.
Json joined_output(const std::vector<StreamEvent>& events) {
  Json output = Json::array();
  for (const auto& [name, data] : events) {
    if (name == "response.output_item.added") {
      EXPECT_EQ(data["output_index"], output.size());
      output.push_back(data["item"]);
    }
    if (data.contains("item_id")) {
      EXPECT_EQ(data["item_id"], output.back()["id"]);
    }
    if (name == "response.content_part.added") output.back()["content"].push_back(data["part"]);
    Json* text = nullptr;
    if (name == "response.function_call_arguments.delta") text = &output.back()["arguments"];
    if (name == "response.output_text.delta" || name == "response.reasoning_text.delta")
      text = &output.back()["content"][data["content_index"].get<std::size_t>()]["text"];
    if (text != nullptr) *text = text->get<std::string>() + data["delta"].get<std::string>();
    if (name == "response.output_item.done") output.back()["status"] = data["item"]["status"];
  }
  return output;
}

Json final_response(const std::vector<StreamEvent>& events) { return events.back().data["response"]; }

ReportedToken responses_token(const std::string& bytes, float logprob) {
  return {1, bytes, logprob, {{2, "x", -3.0f}}};
}

TEST(ResponsesWriter, ShowsReasoningTextAndCallsAsItems) {
  EXPECT_EQ(whole_responses(full_result())["output"], Json::parse(R"([
    {"id": "rs_abcdefghijklmnopqrstuvwx_0", "type": "reasoning", "status": "completed", "summary": [],
     "content": [{"type": "reasoning_text", "text": "I think\n\"so\"."}]},
    {"id": "msg_abcdefghijklmnopqrstuvwx_1", "type": "message", "status": "completed", "role": "assistant",
     "content": [{"type": "output_text", "text": "Grüße, <b>Welt</b>\\", "annotations": [], "logprobs": []}]},
    {"id": "fc_abcdefghijklmnopqrstuvwx_2", "type": "function_call", "status": "completed", "call_id": "call_aaaa",
     "name": "get_weather", "arguments": "{\"city\":\"Graz\"}"},
    {"id": "fc_abcdefghijklmnopqrstuvwx_3", "type": "function_call", "status": "completed", "call_id": "call_bbbb",
     "name": "now", "arguments": "{}"}])"));
}

TEST(ResponsesWriter, UsageTellsCachedAndReasoningTokensApart) {
  EXPECT_EQ(whole_responses(full_result())["usage"], Json::parse(R"({"input_tokens": 20,
    "input_tokens_details": {"cached_tokens": 8, "cache_write_tokens": 0}, "output_tokens": 12,
    "output_tokens_details": {"reasoning_tokens": 5}, "total_tokens": 32})"));
}

TEST(ResponsesWriter, DeltasOfAStreamJoinToTheWholeOutput) {
  EXPECT_EQ(joined_output(stream(full_deltas(), full_result())), whole_responses(full_result())["output"]);
}

TEST(ResponsesWriter, LastEventOfAStreamHasTheWholeResponse) {
  const auto events = stream(full_deltas(), full_result());
  EXPECT_EQ(events.back().name, "response.completed");
  EXPECT_EQ(final_response(events), whole_responses(full_result()));
}

TEST(ResponsesWriter, EventsAreNumberedAndNamedTwice) {
  const auto events = stream(full_deltas(), full_result());
  for (std::size_t i = 0; i < events.size(); ++i) {
    EXPECT_EQ(events[i].data["sequence_number"], i);
    EXPECT_EQ(events[i].data["type"], events[i].name);
  }
}

TEST(ResponsesWriter, StreamOpensAndClosesEachItemInTurn) {
  ReplyResult result = full_result();
  const std::vector<ReplyDelta> deltas = {{"Hm", "", {}}, {"", "Hi", {{0, "call_aaaa", "now", "{}"}}}};
  EXPECT_EQ(names_of(stream(deltas, result)),
            (std::vector<std::string>{
                "response.created", "response.in_progress", "response.output_item.added", "response.content_part.added",
                "response.reasoning_text.delta", "response.reasoning_text.done", "response.content_part.done",
                "response.output_item.done", "response.output_item.added", "response.content_part.added",
                "response.output_text.delta", "response.output_text.done", "response.content_part.done",
                "response.output_item.done", "response.output_item.added", "response.function_call_arguments.delta",
                "response.function_call_arguments.done", "response.output_item.done", "response.completed"}));
}

TEST(ResponsesWriter, DoneEventsHaveTheTextOfTheDeltas) {
  for (const auto& [name, data] : stream(full_deltas(), full_result())) {
    if (name == "response.output_text.done") {
      EXPECT_EQ(data["text"], "Grüße, <b>Welt</b>\\");
    } else if (name == "response.reasoning_text.done") {
      EXPECT_EQ(data["text"], "I think\n\"so\".");
    } else if (name == "response.function_call_arguments.done" && data["output_index"] == 2) {
      EXPECT_EQ(data["arguments"], R"({"city":"Graz"})");
    }
  }
}

TEST(ResponsesWriter, AReplyCutByItsLengthIsIncomplete) {
  ReplyResult result = full_result();
  result.choices[0].reply = {"Hm", "Hi", {}};
  result.choices[0].end.reason = ChoiceEnd::Reason::length;
  const Json response = whole_responses(result);
  EXPECT_EQ(response["status"], "incomplete");
  EXPECT_EQ(response["incomplete_details"]["reason"], "max_output_tokens");
  EXPECT_EQ(response["output"][0]["status"], "completed");
  EXPECT_EQ(response["output"][1]["status"], "incomplete");
  const auto events = stream({{"Hm", "", {}}, {"", "Hi", {}}}, result);
  EXPECT_EQ(events.back().name, "response.incomplete");
  EXPECT_EQ(final_response(events), response);
}

TEST(ResponsesWriter, RepeatsTheSettingsOfTheRequest) {
  Settings settings;
  settings.body = Json::parse(R"({"input": "x", "instructions": "Be brief.", "metadata": {"a": "b"}, "store": true,
    "truncation": "auto", "max_output_tokens": 9, "reasoning": {"effort": "low"}, "text": {"verbosity": "low"},
    "tool_choice": "none", "tools": [{"type": "function", "name": "now"}]})");
  settings.request.sampling.temperature = 0.7f;
  settings.request.parallel_tool_calls = false;
  const Json response = whole_responses(full_result(), settings);
  EXPECT_EQ(response["instructions"], "Be brief.");
  EXPECT_EQ(response["metadata"], Json::parse(R"({"a": "b"})"));
  EXPECT_EQ(response["max_output_tokens"], 9);
  EXPECT_EQ(response["reasoning"], Json::parse(R"({"effort": "low", "summary": null})"));
  EXPECT_EQ(response["text"], Json::parse(R"({"format": {"type": "text"}, "verbosity": "low"})"));
  EXPECT_EQ(response["tool_choice"], "none");
  EXPECT_EQ(response["tools"][0],
            Json::parse(R"({"type": "function", "name": "now", "parameters": null, "strict": null})"));
  EXPECT_EQ(response["temperature"], 0.7);
  EXPECT_EQ(response["parallel_tool_calls"], false);
}

TEST(ResponsesWriter, SaysThatNothingIsStoredOrTruncated) {
  Settings settings;
  settings.body = Json::parse(R"({"input": "x", "store": true, "truncation": "auto"})");
  const Json response = whole_responses(full_result(), settings);
  EXPECT_EQ(response["store"], false);
  EXPECT_EQ(response["truncation"], "disabled");
}

TEST(ResponsesWriter, LogprobsAreThoseOfTheText) {
  Settings settings;
  settings.request.sampling.top_logprobs = 1;
  ReplyResult result = full_result();
  result.choices[0].reply = {"Hm", "Hi", {{"call_aaaa", "now", "{}"}}};
  const std::vector<ReportedToken> tokens = {responses_token("Hm", -1), responses_token("</think>", -2),
                                             responses_token("Hi", -0.5f), responses_token("<tool_call>", -4),
                                             responses_token("now", -5)};
  result.choices[0].tokens = tokens;
  const Json expected = Json::parse(R"([{"token": "Hi", "logprob": -0.5, "bytes": [72, 105],
    "top_logprobs": [{"token": "x", "logprob": -3.0, "bytes": [120]}]}])");
  const Json response = whole_responses(result, settings);
  EXPECT_EQ(response["output"][1]["content"][0]["logprobs"], expected);

  const auto streaming = responses_writer(settings);
  std::string out;
  streaming->begin({}, out);
  streaming->add({0, {"", "", {}}, {tokens[0]}}, {}, out);
  streaming->add({0, {"Hm", "", {}}, {tokens[1]}}, {}, out);
  streaming->add({0, {"", "Hi", {}}, {tokens[2]}}, {}, out);
  streaming->add({0, {"", "", {}}, {tokens[3]}}, {}, out);
  streaming->add({0, {"", "", {{0, "call_aaaa", "now", "{}"}}}, {tokens[4]}}, {}, out);
  streaming->end_choice(result.choices[0].end, result, out);
  streaming->end(result, out);
  const auto events = parse_events(out);
  for (const auto& [name, data] : events) {
    if (name == "response.output_text.delta" || name == "response.output_text.done") {
      EXPECT_EQ(data["logprobs"], expected);
    }
  }
  EXPECT_EQ(final_response(events), response);
}

TEST(ResponsesWriter, AStreamThatBreaksOffFails) {
  const auto streaming = responses_writer();
  std::string out;
  streaming->begin({}, out);
  streaming->add({0, {"", "Hi", {}}, {}}, {}, out);
  out.clear();
  streaming->fail(ApiError(503, "the server is shutting down"), out);
  const auto events = parse_events(out);
  ASSERT_EQ(names_of(events), (std::vector<std::string>{"error", "response.failed"}));
  EXPECT_EQ(events[0].data["message"], "the server is shutting down");
  EXPECT_EQ(events[1].data["response"]["status"], "failed");
  EXPECT_EQ(events[1].data["response"]["error"],
            Json::parse(R"({"code": "server_error", "message": "the server is shutting down"})"));
}

TEST(ResponsesWriter, PingsAreComments) {
  std::string out;
  responses_writer()->ping(out);
  EXPECT_EQ(out, ": ping\n\n");
}

}  // namespace
}  // namespace sluice
