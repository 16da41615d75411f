#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "server/event_stream.h"
#include "server/openai_completions.h"
#include "server/openai_events.h"

namespace sluice {
namespace {

/// Two prompts, two choices each, of tokens that split a character.
ReplyResult full_completion() {
  ReplyResult result;
  result.prompts = {{"Hé", {1, 2}, {{1, "H", {}, {}, 0}, {2, "é", -1.0f, {{3, "i", -0.5f}}, 2}}},
                    {"b", {4}, {{4, "b", {}, {}, 0}}}};
  for (int i = 0; i < 4; ++i) {
    ReplyResult::Choice choice;
    choice.reply.content = "中" + std::to_string(i);
    choice.tokens = {{5, "\xE4", -0.25f, {{5, "\xE4", -0.25f}, {6, "a", -2.0f}}, 1},
                     {7, "\xB8\xAD", -0.5f, {{7, "\xB8\xAD", -0.5f}, {6, "a", -3.0f}}, 1},
                     {8, std::to_string(i), -0.75f, {{6, "a", -0.5f}}, 2}};
    choice.end.index = i;
    choice.end.reason = i == 3 ? ChoiceEnd::Reason::length : ChoiceEnd::Reason::stop;
    result.choices.push_back(choice);
  }
  result.usage = {3, 12, 0, 0};
  result.timings = {1.0, 11.0, 2031.0, 3, 12};
  return result;
}

GenerationRequest full_request() {
  GenerationRequest request;
  request.prompts = {"Hé", "b"};
  request.n = 2;
  return request;
}

Json whole_completion(const GenerationRequest& request) {
  return make_completion_writer(request, test_identity)->whole(full_completion());
}

/// The stream of all choices, a token at a time.
std::string written(const GenerationRequest& request, const ReplyResult& result) {
  const auto writer = make_completion_writer(request, test_identity);
  std::string out;
  writer->begin(result, out);
  for (std::size_t token = 0; token < 3; ++token) {
    for (const ReplyResult::Choice& choice : result.choices) {
      ChoiceDelta delta;
      delta.index = choice.end.index;
      if (token > 0) delta.text.content = token == 1 ? "中" : choice.reply.content.substr(3);
      delta.tokens = {choice.tokens[token]};
      writer->add(delta, result, out);
    }
  }
  for (const ReplyResult::Choice& choice : result.choices) writer->end_choice(choice.end, result, out);
  writer->end(result, out);
  return out;
}

std::vector<Json> streamed_completion(const GenerationRequest& request) {
  const std::string stream = written(request, full_completion());
  EXPECT_TRUE(is_done(stream));
  return openai_events(stream);
}

/// The choices, put together from their events. Of objects that compare however their keys are ordered.
nlohmann::json joined_choices(const std::vector<Json>& events) {
  Json choices = Json::array();
  for (int i = 0; i < 4; ++i) choices.push_back({{"index", i}, {"text", ""}, {"logprobs", nullptr}});
  for (const Json& event : events) {
    if (event["choices"].empty()) continue;
    const Json& piece = event["choices"][0];
    Json& choice = choices[piece["index"].get<std::size_t>()];
    choice["text"].get_ref<std::string&>() += piece["text"].get_ref<const std::string&>();
    for (const char* key : {"finish_reason", "prompt_token_ids"})
      if (piece.contains(key) && !piece[key].is_null()) choice[key] = piece[key];
    if (!piece["logprobs"].is_null())
      for (const auto& [key, list] : piece["logprobs"].items())
        for (const Json& entry : list) choice["logprobs"][key].push_back(entry);
    if (piece.contains("stop_reason")) choice["stop_reason"] = piece["stop_reason"];
    if (piece.contains("token_ids"))
      for (const Json& id : piece["token_ids"]) choice["token_ids"].push_back(id);
  }
  return choices;
}

TEST(CompletionWriter, ShowsAWholeReply) {
  const Json reply = whole_completion(full_request());
  EXPECT_EQ(reply["id"], "cmpl-abcdefghijklmnopqrstuvwx");
  EXPECT_EQ(reply["object"], "text_completion");
  EXPECT_EQ(reply["created"], 1700000000);
  EXPECT_EQ(reply["model"], "tiny");
  EXPECT_EQ(reply["system_fingerprint"], "fp");
  EXPECT_EQ(reply["usage"], usage_json(full_completion().usage));
  EXPECT_EQ(reply["timings"], timings_json(full_completion().timings));
  ASSERT_EQ(reply["choices"].size(), 4u);
  EXPECT_EQ(reply["choices"][3], Json::parse(R"({"index": 3, "text": "中3", "logprobs": null,
                                                 "finish_reason": "length", "stop_reason": null})"));
}

TEST(CompletionWriter, StreamsWhatItShowsWhole) {
  EXPECT_EQ(joined_choices(streamed_completion(full_request())),
            nlohmann::json(whole_completion(full_request())["choices"]));
}

TEST(CompletionWriter, StreamsTheSameWithEverythingThatCanBeAskedFor) {
  GenerationRequest request = full_request();
  request.echo = true;
  request.sampling.top_logprobs = 1;
  request.return_token_ids = true;
  request.include_usage = request.continuous_usage = true;
  EXPECT_EQ(joined_choices(streamed_completion(request)), nlohmann::json(whole_completion(request)["choices"]));
}

TEST(CompletionWriter, WritesEventsOfOneForm) {
  const std::vector<Json> events = streamed_completion(full_request());
  EXPECT_EQ(events.front(), Json::parse(R"({"id": "cmpl-abcdefghijklmnopqrstuvwx", "object": "text_completion",
      "created": 1700000000, "model": "tiny", "system_fingerprint": "fp",
      "choices": [{"index": 0, "text": "中", "logprobs": null, "finish_reason": null}]})"));
  EXPECT_EQ(events.back()["choices"], Json::parse(R"([{"index": 3, "text": "", "logprobs": null,
      "finish_reason": "length", "stop_reason": null}])"));
  EXPECT_TRUE(events.back().contains("timings"));
}

TEST(CompletionWriter, EndsAStreamWithTheUsageIfAsked) {
  GenerationRequest request = full_request();
  request.include_usage = true;
  const std::vector<Json> events = streamed_completion(request);
  EXPECT_TRUE(events.front().at("usage").is_null());
  EXPECT_EQ(events.back()["choices"], Json::array());
  EXPECT_EQ(events.back()["usage"], usage_json(full_completion().usage));
}

TEST(CompletionWriter, EchoesEachChoicesOwnPrompt) {
  GenerationRequest request = full_request();
  request.echo = true;
  const Json choices = whole_completion(request)["choices"];
  EXPECT_EQ(choices[1]["text"], "Hé中1");
  EXPECT_EQ(choices[2]["text"], "b中2");
}

TEST(CompletionWriter, ShowsLogprobsInTheOldShape) {
  GenerationRequest request = full_request();
  request.sampling.top_logprobs = 1;
  EXPECT_EQ(whole_completion(request)["choices"][0]["logprobs"], Json::parse(R"({
      "tokens": ["bytes:\\xe4", "bytes:\\xb8\\xad", "0"], "token_logprobs": [-0.25, -0.5, -0.75],
      "top_logprobs": [{"bytes:\\xe4": -0.25}, {"bytes:\\xb8\\xad": -0.5}, {"0": -0.75, "a": -0.5}],
      "text_offset": [0, 1, 1]})"));
}

TEST(CompletionWriter, ShowsLogprobsOfTheEchoToo) {
  GenerationRequest request = full_request();
  request.sampling.top_logprobs = 1;
  request.echo = true;
  EXPECT_EQ(whole_completion(request)["choices"][1]["logprobs"], Json::parse(R"({
      "tokens": ["H", "é", "bytes:\\xe4", "bytes:\\xb8\\xad", "1"],
      "token_logprobs": [null, -1.0, -0.25, -0.5, -0.75],
      "top_logprobs": [null, {"é": -1.0, "i": -0.5}, {"bytes:\\xe4": -0.25}, {"bytes:\\xb8\\xad": -0.5},
                       {"1": -0.75, "a": -0.5}],
      "text_offset": [0, 1, 2, 3, 3]})"));
}

TEST(CompletionWriter, ShowsNoAlternativesForLogprobsOfZero) {
  GenerationRequest request = full_request();
  request.sampling.top_logprobs = 0;
  EXPECT_EQ(whole_completion(request)["choices"][0]["logprobs"]["top_logprobs"][2], Json({{"0", -0.75}}));
}

TEST(CompletionWriter, ShowsPromptLogprobsAndIdsIfAsked) {
  GenerationRequest request = full_request();
  request.shown_prompt_logprobs = 0;
  request.return_token_ids = true;
  const Json choice = whole_completion(request)["choices"][0];
  EXPECT_EQ(choice["prompt_logprobs"],
            Json::parse(R"([null, {"2": {"logprob": -1.0, "rank": 2, "decoded_token": "é"}}])"));
  EXPECT_EQ(choice["prompt_token_ids"], Json({1, 2}));
  EXPECT_EQ(choice["token_ids"], Json({5, 7, 8}));
}

}  // namespace
}  // namespace sluice
