#include <string>

#include <gtest/gtest.h>

#include "server/openai_completions.h"
#include "server/request_rows.h"

namespace sluice {
namespace {

using Ids = std::vector<TokenId>;

const Json completion_body = Json::parse(R"({"prompt": "Hi"})");

GenerationRequest parse_completion(const std::string& fields) {
  return parse_completion_request(with_fields(completion_body, fields), test_defaults());
}

TEST(CompletionRequest, WithAFieldOfAWrongFormIsRefusedByItsName) {
  const std::string forms = "a string, an array of strings, of token ids, or of arrays of token ids";
  expect_refused(
      parse_completion_request, completion_body,
      {{R"({"prompt": null})", "prompt: this field is required", "prompt"},
       {R"({"prompt": 5})", "prompt: expected " + forms + ", found 5", "prompt"},
       {R"({"prompt": {}})", "prompt: expected " + forms + ", found an object", "prompt"},
       {R"({"prompt": []})", "prompt: at least one prompt is needed", "prompt"},
       {R"({"prompt": [null]})", "prompt[0]: expected a string, a token id or an array of them, found null",
        "prompt[0]"},
       {R"({"prompt": ["a", 5]})", "prompt[1]: expected a string, as the first of the list is one, found 5",
        "prompt[1]"},
       {R"({"prompt": [5, "a"]})", "prompt[1]: expected a token id from 0 to 99, found \"a\"", "prompt[1]"},
       {R"({"prompt": [[5], "a"]})",
        "prompt[1]: expected an array of token ids, as the first of the list is one, found \"a\"", "prompt[1]"},
       {R"({"prompt": [[5], []]})", "prompt[1]: at least one token is needed", "prompt[1]"},
       {R"({"prompt": [5, 100]})", "prompt[1]: expected a token id from 0 to 99, found 100", "prompt[1]"},
       {R"({"prompt": [-1]})", "prompt[0]: expected a token id from 0 to 99, found -1", "prompt[0]"},
       {R"({"prompt": [1.5]})", "prompt[0]: expected a token id from 0 to 99, found 1.5", "prompt[0]"},
       {R"({"prompt": [[1, 1e9]]})", "prompt[0][1]: expected a token id from 0 to 99, found 1000000000.0",
        "prompt[0][1]"},
       {R"({"prompt": ["a", "b", "c", "d", "e", "f", "g", "h", "i"]})", "prompt: at most 8 prompts are taken, found 9",
        "prompt"},
       {R"({"prompt": ["a", "b", "c"], "n": 3})",
        "n: at most 8 replies are given to a request; 3 prompts times 3 is more", "n"},
       {R"({"prompt": null, "prompt_embeds": "x"})", "prompt_embeds: not supported: prompts are text or token ids",
        "prompt_embeds"},
       {R"({"echo": 1})", "echo: expected true or false, found 1", "echo"},
       {R"({"logprobs": true})", "logprobs: expected an integer from 0 to 5, found true", "logprobs"},
       {R"({"logprobs": 6})", "logprobs: expected an integer from 0 to 5, found 6", "logprobs"},
       {R"({"best_of": "2"})", "best_of: expected an integer of 1 or more, found \"2\"", "best_of"},
       {R"({"suffix": 5})", "suffix: not supported: nothing can be put after a reply", "suffix"}});
}

TEST(CompletionRequest, HasOnePromptOrMany) {
  const auto prompts = [](const char* fields) { return parse_completion(fields).prompts; };
  EXPECT_EQ(prompts("{}"), std::vector<TextPrompt>{"Hi"});
  EXPECT_EQ(prompts(R"({"prompt": ["a", "b"]})"), (std::vector<TextPrompt>{"a", "b"}));
  EXPECT_EQ(prompts(R"({"prompt": [0, 99]})"), (std::vector<TextPrompt>{Ids{0, 99}}));
  EXPECT_EQ(prompts(R"({"prompt": [[1, 2], [3]]})"), (std::vector<TextPrompt>{Ids{1, 2}, Ids{3}}));
  EXPECT_FALSE(parse_completion("{}").chat);
}

TEST(CompletionRequest, TakesLongListsOfIds) {
  Json fields = {{"prompt", Json::array()}};
  for (int i = 0; i < 500; ++i) fields["prompt"].push_back(i % 100);
  EXPECT_EQ(std::get<Ids>(parse_completion(fields.dump()).prompts.at(0)).size(), 500u);
}

TEST(CompletionRequest, IsShortUnlessItSaysOtherwise) {
  EXPECT_EQ(parse_completion("{}").sampling.max_tokens, 16);
  EXPECT_EQ(parse_completion(R"({"min_tokens": 20})").sampling.max_tokens, 20);
  EXPECT_EQ(parse_completion(R"({"max_tokens": 500})").sampling.max_tokens, 500);
  RequestDefaults defaults = test_defaults();
  defaults.sampling.max_tokens = 64;
  EXPECT_EQ(parse_completion_request(completion_body, defaults).sampling.max_tokens, 64);
}

TEST(CompletionRequest, GeneratesNothingIfOnlyTheEchoIsWanted) {
  EXPECT_TRUE(parse_completion(R"({"max_tokens": 1, "echo": true})").limits_output);
  const GenerationRequest request = parse_completion(R"({"max_tokens": 0, "echo": true})");
  EXPECT_TRUE(request.echo);
  EXPECT_FALSE(request.limits_output);
}

TEST(CompletionRequest, ScoresThePromptIfItIsEchoedWithLogprobs) {
  EXPECT_EQ(parse_completion(R"({"logprobs": 3})").sampling.top_logprobs, 3);
  EXPECT_EQ(parse_completion(R"({"logprobs": 3})").sampling.prompt_logprobs, -1);
  EXPECT_EQ(parse_completion(R"({"echo": true})").sampling.prompt_logprobs, -1);
  GenerationRequest request = parse_completion(R"({"logprobs": 3, "echo": true, "stream": true})");
  EXPECT_EQ(request.sampling.prompt_logprobs, 3);
  EXPECT_EQ(request.shown_prompt_logprobs, -1);
  request = parse_completion(R"({"logprobs": 1, "echo": true, "prompt_logprobs": 4})");
  EXPECT_EQ(request.sampling.prompt_logprobs, 4);
  EXPECT_EQ(request.shown_prompt_logprobs, 4);
}

TEST(CompletionRequest, TakesAnEmptySuffixForNone) {
  EXPECT_TRUE(parse_completion(R"({"suffix": "", "user": "u"})").unknown_fields.empty());
}

}  // namespace
}  // namespace sluice
