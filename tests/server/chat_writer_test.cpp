#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "server/event_stream.h"
#include "server/openai_chat.h"
#include "server/openai_events.h"

namespace sluice {
namespace {

std::vector<Json> streamed_chat(const GenerationRequest& request, const std::vector<ReplyDelta>& deltas,
                                const ReplyResult& result) {
  const std::string stream = written_stream(*make_chat_writer(request, test_identity), deltas, result);
  EXPECT_TRUE(is_done(stream));
  return openai_events(stream);
}

Json whole_chat(const GenerationRequest& request, const ReplyResult& result) {
  return make_chat_writer(request, test_identity)->whole(result);
}

void append_text(Json& message, const Json& delta, const char* key) {
  if (!delta.contains(key)) return;
  if (!message.contains(key) || message[key].is_null()) message[key] = "";
  message[key].get_ref<std::string&>() += delta[key].get_ref<const std::string&>();
}

/// The first choice's message, put together as OpenAI's client does it.
Json joined_chat(const std::vector<Json>& events) {
  Json message = {{"role", nullptr},
                  {"content", nullptr},
                  {"refusal", nullptr},
                  {"reasoning_content", nullptr},
                  {"reasoning", nullptr}};
  for (const Json& event : events) {
    if (event["choices"].empty()) continue;
    const Json& delta = event["choices"][0]["delta"];
    if (delta.contains("role")) message["role"] = delta["role"];
    for (const char* key : {"content", "reasoning_content", "reasoning"}) append_text(message, delta, key);
    if (!delta.contains("tool_calls")) continue;
    for (const Json& fragment : delta["tool_calls"]) {
      const auto index = fragment["index"].get<std::size_t>();
      if (fragment.contains("id")) {
        EXPECT_EQ(index, message.contains("tool_calls") ? message["tool_calls"].size() : 0);
        message["tool_calls"].push_back({{"id", fragment["id"]},
                                         {"type", fragment["type"]},
                                         {"function", {{"name", fragment["function"]["name"]}, {"arguments", ""}}}});
      }
      append_text(message["tool_calls"][index]["function"], fragment["function"], "arguments");
    }
  }
  if (message["content"] == "") message["content"] = nullptr;
  return message;
}

ReportedToken chat_token(TokenId id, const std::string& bytes, float logprob) {
  return {id, bytes, logprob, {{id, bytes, logprob}, {9, "\xE4", -4.0f}, {8, "x", -5.0f}}, 1};
}

TEST(ChatWriter, ShowsAWholeReply) {
  EXPECT_EQ(whole_chat({}, full_result()), Json::parse(R"({
      "id": "chatcmpl-abcdefghijklmnopqrstuvwx", "object": "chat.completion", "created": 1700000000, "model": "tiny",
      "system_fingerprint": "fp", "service_tier": null,
      "choices": [{"index": 0,
        "message": {"role": "assistant", "content": "Grüße, <b>Welt</b>\\", "refusal": null,
          "reasoning_content": "I think\n\"so\".", "reasoning": "I think\n\"so\".",
          "tool_calls": [
            {"id": "call_aaaa", "type": "function",
             "function": {"name": "get_weather", "arguments": "{\"city\":\"Graz\"}"}},
            {"id": "call_bbbb", "type": "function", "function": {"name": "now", "arguments": "{}"}}]},
        "logprobs": null, "finish_reason": "tool_calls", "stop_reason": null}],
      "usage": {"prompt_tokens": 20, "completion_tokens": 12, "total_tokens": 32,
        "prompt_tokens_details": {"cached_tokens": 8}, "completion_tokens_details": {"reasoning_tokens": 5}},
      "timings": {"queued_ms": 1.0, "prompt_n": 20, "prompt_ms": 10.0, "prompt_per_second": 2000.0, "predicted_n": 12,
        "predicted_ms": 2020.0, "predicted_per_second": 5.446}})"));
}

TEST(ChatWriter, ShowsAReplyWithoutTextAsNull) {
  ReplyResult result = full_result();
  result.choices[0].reply = {};
  const Json message = whole_chat({}, result)["choices"][0]["message"];
  EXPECT_TRUE(message["content"].is_null());
  EXPECT_TRUE(message["reasoning_content"].is_null());
  EXPECT_FALSE(message.contains("tool_calls"));
}

TEST(ChatWriter, StreamsWhatItShowsWhole) {
  EXPECT_EQ(joined_chat(streamed_chat({}, full_deltas(), full_result())),
            whole_chat({}, full_result())["choices"][0]["message"]);
}

TEST(ChatWriter, StreamsTheSameInItsGeneralForm) {
  GenerationRequest request;
  request.return_token_ids = true;
  EXPECT_EQ(joined_chat(streamed_chat(request, full_deltas(), full_result())),
            whole_chat({}, full_result())["choices"][0]["message"]);
}

TEST(ChatWriter, WritesEventsOfOneForm) {
  for (const bool general : {false, true}) {
    GenerationRequest request;
    request.continuous_usage = general;
    const std::vector<Json> events = streamed_chat(request, {{"", "a", {}}}, full_result());
    ASSERT_EQ(events.size(), 3u);
    EXPECT_EQ(events[0]["choices"][0]["delta"], Json::parse(R"({"role": "assistant", "content": ""})"));
    EXPECT_EQ(events[1], Json::parse(R"({"id": "chatcmpl-abcdefghijklmnopqrstuvwx", "object": "chat.completion.chunk",
        "created": 1700000000, "model": "tiny", "system_fingerprint": "fp",
        "choices": [{"index": 0, "delta": {"content": "a"}, "logprobs": null, "finish_reason": null}]})"));
    EXPECT_EQ(events[2]["choices"], Json::parse(R"([{"index": 0, "delta": {}, "logprobs": null,
        "finish_reason": "tool_calls", "stop_reason": null}])"));
    EXPECT_EQ(events[2].at("timings")["predicted_n"], 12);
  }
}

TEST(ChatWriter, EndsAStreamWithTheUsageIfAsked) {
  GenerationRequest request;
  request.include_usage = true;
  const std::vector<Json> events = streamed_chat(request, full_deltas(), full_result());
  for (std::size_t i = 0; i + 1 < events.size(); ++i) {
    EXPECT_EQ(events[i]["choices"].size(), 1u);
    EXPECT_TRUE(events[i].at("usage").is_null());
  }
  EXPECT_EQ(events.back()["choices"], Json::array());
  EXPECT_EQ(events.back()["usage"], usage_json(full_result().usage));
}

TEST(ChatWriter, ShowsTheUsageInEveryEventIfAsked) {
  GenerationRequest request;
  request.include_usage = request.continuous_usage = true;
  for (const Json& event : streamed_chat(request, full_deltas(), full_result()))
    EXPECT_EQ(event.at("usage")["prompt_tokens"], 20);
}

TEST(ChatWriter, WritesNothingForDeltasWithoutText) {
  const auto writer = make_chat_writer({}, test_identity);
  std::string out;
  writer->add({0, {}, {}}, {}, out);
  EXPECT_EQ(out, "");
}

TEST(ChatWriter, EscapesAnyTextToTheSameJsonInBothForms) {
  std::string text = "\"\\/\b\f\n\r\t\x01\x1F\x7F <é中😀\u2028>";
  text += '\0';
  const ReplyResult result = full_result();
  GenerationRequest general;
  general.return_token_ids = true;
  for (const GenerationRequest& request : {GenerationRequest(), general}) {
    const Json message = joined_chat(streamed_chat(request, {{text, text, {}}}, result));
    EXPECT_EQ(message["content"], text);
    EXPECT_EQ(message["reasoning"], text);
  }
}

TEST(ChatWriter, ReplacesBytesThatAreNoUtf8) {
  GenerationRequest general;
  general.return_token_ids = true;
  for (const GenerationRequest& request : {GenerationRequest(), general}) {
    const Json message =
        joined_chat(streamed_chat(request, {{"r\xFF", "a\xE4\xB8", {}}, {"", "\x80z", {}}}, full_result()));
    EXPECT_EQ(message["content"], "a\uFFFD\uFFFDz");
    EXPECT_EQ(message["reasoning"], "r\uFFFD");
  }
}

TEST(ChatWriter, BreaksAStreamOffWithTheError) {
  const auto writer = make_chat_writer({}, test_identity);
  std::string out;
  writer->fail(ApiError(503, "the server is shutting down"), out);
  EXPECT_EQ(openai_events(out), std::vector<Json>{Json::parse(R"({"error": {"message": "the server is shutting down",
                                "type": "server_error", "param": null, "code": null}})")});
}

TEST(ChatWriter, PingsWithAComment) {
  std::string out;
  make_chat_writer({}, test_identity)->ping(out);
  EXPECT_EQ(out, ": ping\n\n");
}

TEST(ChatWriter, StreamsSeveralChoicesAndHasTheTimingsInTheLastEnd) {
  GenerationRequest request;
  request.n = 2;
  const auto writer = make_chat_writer(request, test_identity);
  std::string out;
  ReplyResult result = full_result();
  result.choices.resize(2);
  result.choices[1].end.index = 1;
  writer->begin(result, out);
  writer->add({1, {"", "one", {}}, {}}, result, out);
  writer->end_choice(result.choices[1].end, result, out);
  writer->add({0, {"", "zero", {}}, {}}, result, out);
  writer->end_choice(result.choices[0].end, result, out);
  writer->end(result, out);
  const std::vector<Json> events = openai_events(out);
  std::vector<int> indices;
  for (const Json& event : events) indices.push_back(event["choices"][0]["index"].get<int>());
  EXPECT_EQ(indices, (std::vector<int>{0, 1, 1, 1, 0, 0}));
  EXPECT_EQ(events[3]["choices"][0]["finish_reason"], "stop");
  EXPECT_FALSE(events[3].contains("timings"));
  EXPECT_EQ(events[4]["choices"][0]["delta"]["content"], "zero");
  EXPECT_TRUE(events[5].contains("timings"));
}

TEST(ChatWriter, TellsWhatStoppedAChoice) {
  ReplyResult result = full_result();
  ChoiceEnd& end = result.choices[0].end;
  end.reason = ChoiceEnd::Reason::stop;
  end.stop_string = "END";
  EXPECT_EQ(whole_chat({}, result)["choices"][0]["stop_reason"], "END");
  EXPECT_EQ(streamed_chat({}, {}, result).back()["choices"][0]["stop_reason"], "END");
  end.stop_string.reset();
  end.stop_token = 7;
  EXPECT_EQ(whole_chat({}, result)["choices"][0]["stop_reason"], 7);
  end.stop_token.reset();
  end.reason = ChoiceEnd::Reason::length;
  EXPECT_EQ(whole_chat({}, result)["choices"][0]["finish_reason"], "length");
}

TEST(ChatWriter, ShowsLogprobsAsListsOfTokens) {
  GenerationRequest request;
  request.sampling.top_logprobs = 2;
  ReplyResult result = full_result();
  result.choices[0].tokens = {chat_token(5, "é", -0.5f), chat_token(6, "b", -std::numeric_limits<float>::infinity())};
  const Json logprobs = whole_chat(request, result)["choices"][0]["logprobs"];
  EXPECT_EQ(logprobs, Json::parse(R"({"content": [
      {"token": "é", "logprob": -0.5, "bytes": [195, 169], "top_logprobs": [
        {"token": "é", "logprob": -0.5, "bytes": [195, 169]}, {"token": "\uFFFD", "logprob": -4.0, "bytes": [228]}]},
      {"token": "b", "logprob": -9999.0, "bytes": [98], "top_logprobs": [
        {"token": "b", "logprob": -9999.0, "bytes": [98]}, {"token": "\uFFFD", "logprob": -4.0, "bytes": [228]}]}], "refusal": null})"));
  const auto writer = make_chat_writer(request, test_identity);
  std::string out;
  writer->add({0, {}, {result.choices[0].tokens[0]}}, {}, out);
  writer->add({0, {"", "éb", {}}, {result.choices[0].tokens[1]}}, {}, out);
  Json streamed_content = Json::array();
  for (const Json& event : openai_events(out))
    for (const Json& entry : event["choices"][0]["logprobs"]["content"]) streamed_content.push_back(entry);
  EXPECT_EQ(streamed_content, logprobs["content"]);
}

TEST(ChatWriter, ShowsTokenIdsIfAsked) {
  GenerationRequest request;
  request.return_token_ids = true;
  ReplyResult result = full_result();
  result.prompts[0].ids = {1, 2};
  result.choices[0].tokens = {chat_token(5, "a", -0.5f), chat_token(6, "b", -0.5f)};
  const Json reply = whole_chat(request, result);
  EXPECT_EQ(reply["prompt_token_ids"], Json({1, 2}));
  EXPECT_EQ(reply["choices"][0]["token_ids"], Json({5, 6}));
  EXPECT_TRUE(reply["choices"][0]["logprobs"].is_null());
  const auto writer = make_chat_writer(request, test_identity);
  std::string out;
  writer->begin(result, out);
  writer->add({0, {"", "ab", {}}, result.choices[0].tokens}, result, out);
  const auto events = openai_events(out);
  EXPECT_EQ(events[0]["prompt_token_ids"], Json({1, 2}));
  EXPECT_EQ(events[1]["choices"][0]["token_ids"], Json({5, 6}));
}

TEST(ChatWriter, ShowsPromptLogprobsIfAsked) {
  GenerationRequest request;
  request.shown_prompt_logprobs = 1;
  ReplyResult result = full_result();
  result.prompts[0].logprobs = {{4, "x", {}, {}, 0}, {5, "y", -3.0f, {{6, "z", -0.25f}, {5, "y", -3.0f}}, 2}};
  EXPECT_EQ(whole_chat(request, result)["prompt_logprobs"], Json::parse(R"([null,
      {"5": {"logprob": -3.0, "rank": 2, "decoded_token": "y"}, "6": {"logprob": -0.25, "rank": 1,
       "decoded_token": "z"}}])"));
}

TEST(ChatWriter, LeavesReasoningOutIfItIsNotToBeShown) {
  GenerationRequest request;
  request.include_reasoning = false;
  const Json message = whole_chat(request, full_result())["choices"][0]["message"];
  EXPECT_TRUE(message["reasoning"].is_null());
  EXPECT_EQ(message["content"], full_result().choices[0].reply.content);
  EXPECT_EQ(joined_chat(streamed_chat(request, full_deltas(), full_result())), message);
}

TEST(ChatWriter, PutsReasoningBeforeTheContentIfItIsNotToBeToldApart) {
  GenerationRequest request;
  request.separate_reasoning = false;
  const Json message = whole_chat(request, full_result())["choices"][0]["message"];
  EXPECT_TRUE(message["reasoning"].is_null());
  EXPECT_EQ(message["content"], "I think\n\"so\".\n</think>\n\nGrüße, <b>Welt</b>\\");
  EXPECT_EQ(joined_chat(streamed_chat(request, full_deltas(), full_result())), message);
  ReplyResult unfinished = full_result();
  unfinished.choices[0].reply = {"I think", "", {}};
  EXPECT_EQ(whole_chat(request, unfinished)["choices"][0]["message"]["content"], "I think");
}

}  // namespace
}  // namespace sluice
