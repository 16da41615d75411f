#include <cstdint>

#include <gtest/gtest.h>

#include "server/openai_chat.h"
#include "server/openai_completions.h"
#include "server/request_rows.h"

namespace sluice {
namespace {

const Json chat_body = Json::parse(R"({"messages": [{"role": "user", "content": "Hi"}]})");
const Json completion_body = Json::parse(R"({"prompt": "Hi"})");

/// The fields that both of OpenAI's APIs have, read by both.
class SharedFields : public testing::TestWithParam<bool> {
 protected:
  ParseRequest parser() const { return GetParam() ? parse_chat_request : parse_completion_request; }
  const Json& body() const { return GetParam() ? chat_body : completion_body; }
  GenerationRequest parse(const std::string& fields) const {
    return parser()(with_fields(body(), fields), test_defaults());
  }
};

INSTANTIATE_TEST_SUITE_P(OfBothApis, SharedFields, testing::Bool(),
                         [](const auto& api) { return api.param ? "Chat" : "Completion"; });

TEST_P(SharedFields, OfAWrongTypeOrOutOfRangeAreRefusedByName) {
  expect_refused(
      parser(), body(),
      {{R"({"model": 3})", "model: expected a string, found 3", "model"},
       {R"({"temperature": "hot"})", "temperature: expected a number from 0 to 2, found \"hot\"", "temperature"},
       {R"({"temperature": 2.1})", "temperature: expected a number from 0 to 2, found 2.1", "temperature"},
       {R"({"temperature": -0.1})", "temperature: expected a number from 0 to 2, found -0.1", "temperature"},
       {R"({"top_p": 0})", "top_p: expected a number above 0, up to 1, found 0", "top_p"},
       {R"({"top_p": 1.01})", "top_p: expected a number above 0, up to 1, found 1.01", "top_p"},
       {R"({"top_p": true})", "top_p: expected a number above 0, up to 1, found true", "top_p"},
       {R"({"top_k": -2})", "top_k: expected an integer from -1 to 2147483647, found -2", "top_k"},
       {R"({"top_k": 1.5})", "top_k: expected an integer from -1 to 2147483647, found 1.5", "top_k"},
       {R"({"min_p": 1.5})", "min_p: expected a number from 0 to 1, found 1.5", "min_p"},
       {R"({"min_p": []})", "min_p: expected a number from 0 to 1, found an array", "min_p"},
       {R"({"presence_penalty": 2.5})", "presence_penalty: expected a number from -2 to 2, found 2.5",
        "presence_penalty"},
       {R"({"presence_penalty": {}})", "presence_penalty: expected a number from -2 to 2, found an object",
        "presence_penalty"},
       {R"({"frequency_penalty": -3})", "frequency_penalty: expected a number from -2 to 2, found -3",
        "frequency_penalty"},
       {R"({"frequency_penalty": "1"})", "frequency_penalty: expected a number from -2 to 2, found \"1\"",
        "frequency_penalty"},
       {R"({"repetition_penalty": 0})", "repetition_penalty: expected a number from 0.01 to 100, found 0",
        "repetition_penalty"},
       {R"({"repetition_penalty": false})", "repetition_penalty: expected a number from 0.01 to 100, found false",
        "repetition_penalty"},
       {R"({"seed": "7"})", "seed: expected an integer of 64 bits, found \"7\"", "seed"},
       {R"({"seed": 9223372036854775808})", "seed: expected an integer of 64 bits, found 9223372036854775808", "seed"},
       {R"({"stop": 5})", "stop: expected a string or an array of strings, found 5", "stop"},
       {R"({"stop": ""})", "stop: expected a string that is not empty, found \"\"", "stop"},
       {R"({"stop": ["a", 5]})", "stop[1]: expected a string that is not empty, found 5", "stop[1]"},
       {R"({"stop": ["a", "b", "c", "d"]})", "stop: at most 3 strings are taken, found 4", "stop"},
       {R"({"stop_token_ids": 5})", "stop_token_ids: expected an array, found 5", "stop_token_ids"},
       {R"({"stop_token_ids": [1, 100]})", "stop_token_ids[1]: expected a token id from 0 to 99, found 100",
        "stop_token_ids[1]"},
       {R"({"stop_token_ids": ["1"]})", "stop_token_ids[0]: expected a token id from 0 to 99, found \"1\"",
        "stop_token_ids[0]"},
       {R"({"min_tokens": -1})", "min_tokens: expected an integer from 0 to 2147483647, found -1", "min_tokens"},
       {R"({"min_tokens": "1"})", "min_tokens: expected an integer from 0 to 2147483647, found \"1\"", "min_tokens"},
       {R"({"min_tokens": 9, "max_tokens": 8})", "min_tokens: expected at most max_tokens, 8, found 9", "min_tokens"},
       {R"({"ignore_eos": 1})", "ignore_eos: expected true or false, found 1", "ignore_eos"},
       {R"({"logit_bias": []})", "logit_bias: expected an object, found an array", "logit_bias"},
       {R"({"logit_bias": {"100": 1}})", "logit_bias: expected keys that are token ids from 0 to 99, found \"100\"",
        "logit_bias"},
       {R"({"logit_bias": {"07": 1}})", "logit_bias: expected keys that are token ids from 0 to 99, found \"07\"",
        "logit_bias"},
       {R"({"logit_bias": {"-0": 1}})", "logit_bias: expected keys that are token ids from 0 to 99, found \"-0\"",
        "logit_bias"},
       {R"({"logit_bias": {"the": 1}})", "logit_bias: expected keys that are token ids from 0 to 99, found \"the\"",
        "logit_bias"},
       {R"({"logit_bias": {"7": 101}})", "logit_bias.7: expected a number from -100 to 100, found 101", "logit_bias.7"},
       {R"({"logit_bias": {"7": "1"}})", "logit_bias.7: expected a number from -100 to 100, found \"1\"",
        "logit_bias.7"},
       {R"({"n": 0})", "n: expected an integer from 1 to 8, found 0", "n"},
       {R"({"n": 9})", "n: expected an integer from 1 to 8, found 9", "n"},
       {R"({"n": "two"})", "n: expected an integer from 1 to 8, found \"two\"", "n"},
       {R"({"best_of": 2})", "best_of: not supported: every choice is returned; best_of must be n", "best_of"},
       {R"({"prompt_logprobs": 6})", "prompt_logprobs: expected an integer from 0 to 5, found 6", "prompt_logprobs"},
       {R"({"prompt_logprobs": true})", "prompt_logprobs: expected an integer from 0 to 5, found true",
        "prompt_logprobs"},
       {R"({"prompt_logprobs": 1, "stream": true})", "prompt_logprobs: not available when stream is true",
        "prompt_logprobs"},
       {R"({"max_tokens": -1})",
        GetParam() ? "max_tokens: expected an integer of 1 or more, found -1"
                   : "max_tokens: expected an integer of 0 or more, found -1",
        "max_tokens"},
       {R"({"max_tokens": 0})",
        GetParam() ? "max_tokens: expected an integer of 1 or more, found 0"
                   : "max_tokens: expected an integer of 1 or more (0 only with echo), found 0",
        "max_tokens"},
       {R"({"max_completion_tokens": "all"})",
        GetParam() ? "max_completion_tokens: expected an integer of 1 or more, found \"all\""
                   : "max_completion_tokens: expected an integer of 0 or more, found \"all\"",
        "max_completion_tokens"},
       {R"({"priority": 1e10})", "priority: expected an integer from -2147483647 to 2147483647, found 10000000000.0",
        "priority"},
       {R"({"include_stop_str_in_output": "no"})", "include_stop_str_in_output: expected true or false, found \"no\"",
        "include_stop_str_in_output"},
       {R"({"thinking_budget": -1})", "thinking_budget: expected an integer of 0 or more, found -1", "thinking_budget"},
       {R"({"thinking_token_budget": 0.5})", "thinking_token_budget: expected an integer of 0 or more, found 0.5",
        "thinking_token_budget"},
       {R"({"return_token_ids": 1})", "return_token_ids: expected true or false, found 1", "return_token_ids"},
       {R"({"request_id": 1})", "request_id: expected a string, found 1", "request_id"},
       {R"({"stream": "true"})", "stream: expected true or false, found \"true\"", "stream"},
       {R"({"stream_options": {"include_usage": true}})", "stream_options: only allowed when stream is true",
        "stream_options"},
       {R"({"stream": true, "stream_options": true})", "stream_options: expected an object, found true",
        "stream_options"},
       {R"({"stream": true, "stream_options": {"include_usage": 1}})",
        "stream_options.include_usage: expected true or false, found 1", "stream_options.include_usage"},
       {R"({"stream": true, "stream_options": {"include_usage": true, "continuous_usage_stats": 1}})",
        "stream_options.continuous_usage_stats: expected true or false, found 1",
        "stream_options.continuous_usage_stats"}});
}

TEST_P(SharedFields, ThatOtherServersKnowAreRefusedIfTheyWouldMatter) {
  expect_refused(
      parser(), body(),
      {{R"({"use_beam_search": true})", "use_beam_search: not supported: there is no beam search", "use_beam_search"},
       {R"({"length_penalty": 0.5})", "length_penalty: not supported: there is no beam search", "length_penalty"},
       {R"({"allowed_token_ids": [1]})", "allowed_token_ids: not supported: use logit_bias or structured_outputs",
        "allowed_token_ids"},
       {R"({"bad_words": ["x"]})", "bad_words: not supported: use logit_bias", "bad_words"},
       {R"({"logits_processors": ["x"]})", "logits_processors: not supported: requests cannot bring code",
        "logits_processors"},
       {R"({"truncate_prompt_tokens": 10})",
        "truncate_prompt_tokens: not supported: a prompt that is too long is an error", "truncate_prompt_tokens"},
       {R"({"skip_special_tokens": false})",
        "skip_special_tokens: not supported: special tokens are never part of the text", "skip_special_tokens"},
       {R"({"suffix": "end"})", "suffix: not supported: nothing can be put after a reply", "suffix"},
       {R"({"chat_template": "{{ x }}"})", "chat_template: not supported: only the model's own template is used",
        "chat_template"}});
  const GenerationRequest request = parse(R"({"use_beam_search": false, "length_penalty": 1.0, "bad_words": [],
      "logits_processors": null, "skip_special_tokens": true, "best_of": 1, "detokenize": true})");
  EXPECT_TRUE(request.unknown_fields.empty());
}

TEST_P(SharedFields, OfStructuredOutputOfAWrongFormAreRefused) {
  expect_refused(
      parser(), body(),
      {{R"({"response_format": "json"})", "response_format: expected an object, found \"json\"", "response_format"},
       {R"({"response_format": {}})", "response_format.type: this field is required", "response_format.type"},
       {R"({"response_format": {"type": "xml"}})",
        R"(response_format.type: expected one of "text", "json_object", "json_schema", found "xml")",
        "response_format.type"},
       {R"({"response_format": {"type": "json_schema"}})", "response_format.json_schema: this field is required",
        "response_format.json_schema"},
       {R"({"response_format": {"type": "json_schema", "json_schema": {"schema": {}}}})",
        "response_format.json_schema.name: this field is required", "response_format.json_schema.name"},
       {R"({"response_format": {"type": "json_schema", "json_schema": {"name": "a"}}})",
        "response_format.json_schema.schema: this field is required", "response_format.json_schema.schema"},
       {R"({"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": []}}})",
        "response_format.json_schema.schema: expected an object, found an array", "response_format.json_schema.schema"},
       {R"({"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": {}, "strict": "yes"}}})",
        "response_format.json_schema.strict: expected true or false, found \"yes\"",
        "response_format.json_schema.strict"},
       {R"({"guided_json": 5})", "guided_json: expected a JSON schema: an object, or one as text, found 5",
        "guided_json"},
       {R"({"guided_json": "[1]"})", "guided_json: expected a JSON schema: an object, or one as text, found \"[1]\"",
        "guided_json"},
       {R"({"guided_regex": []})", "guided_regex: expected a string, found an array", "guided_regex"},
       {R"({"guided_choice": "yes"})", "guided_choice: expected an array, found \"yes\"", "guided_choice"},
       {R"({"guided_choice": []})", "guided_choice: at least one choice is needed", "guided_choice"},
       {R"({"guided_choice": ["yes", ""]})", "guided_choice[1]: expected a string that is not empty, found \"\"",
        "guided_choice[1]"},
       {R"({"guided_grammar": {}})", "guided_grammar: expected a string, found an object", "guided_grammar"},
       {R"({"guided_whitespace_pattern": " "})",
        "guided_whitespace_pattern: not supported: white space follows from the grammar", "guided_whitespace_pattern"},
       {R"({"structured_outputs": "json"})", "structured_outputs: expected an object, found \"json\"",
        "structured_outputs"},
       {R"({"structured_outputs": {}})",
        "structured_outputs: expected one of json, regex, choice, grammar, json_object", "structured_outputs"},
       {R"({"structured_outputs": {"regex": 1}})", "structured_outputs.regex: expected a string, found 1",
        "structured_outputs.regex"},
       {R"({"structured_outputs": {"structural_tag": "{}"}})",
        "structured_outputs.structural_tag: not supported: use tools, or another kind of structure",
        "structured_outputs.structural_tag"},
       {R"({"structured_outputs": {"regex": "a", "json_object": true}})",
        "structured_outputs.json_object: a reply has one structure only, and structured_outputs.regex gives one "
        "already",
        "structured_outputs.json_object"},
       {R"({"guided_regex": "a", "guided_choice": ["b"]})",
        "guided_choice: a reply has one structure only, and guided_regex gives one already", "guided_choice"},
       {R"({"response_format": {"type": "json_object"}, "structured_outputs": {"regex": "a"}})",
        "structured_outputs: a reply has one structure only, and response_format gives one already",
        "structured_outputs"}});
}

TEST_P(SharedFields, ThatAreAbsentOrNullTakeTheServersDefaults) {
  const SamplingParams expected = test_defaults().sampling;
  for (const char* fields : {"{}", R"({"temperature": null, "top_p": null, "top_k": null, "min_p": null, "seed": null,
           "stop": null, "logit_bias": null, "n": null, "response_format": null, "stream": null, "max_tokens": null,
           "stream_options": null, "logprobs": null, "prompt_logprobs": null, "thinking_budget": null})"}) {
    const GenerationRequest request = parse(fields);
    EXPECT_EQ(request.sampling.temperature, expected.temperature);
    EXPECT_EQ(request.sampling.top_p, expected.top_p);
    EXPECT_EQ(request.sampling.top_k, expected.top_k);
    EXPECT_EQ(request.sampling.seed, std::nullopt);
    EXPECT_EQ(request.sampling.top_logprobs, -1);
    EXPECT_EQ(request.sampling.prompt_logprobs, -1);
    EXPECT_EQ(request.sampling.max_tokens, GetParam() ? 0 : 16);
    EXPECT_TRUE(request.stop.empty());
    EXPECT_EQ(request.n, 1);
    EXPECT_FALSE(request.stream);
    EXPECT_FALSE(request.grammar);
    EXPECT_FALSE(request.thinking_budget);
    EXPECT_TRUE(request.unknown_fields.empty());
  }
}

TEST_P(SharedFields, ReachTheRequest) {
  const GenerationRequest request = parse(R"({"model": "m", "temperature": 0, "top_p": 0.5, "top_k": 7, "min_p": 0.25,
      "presence_penalty": -2, "frequency_penalty": 2, "repetition_penalty": 1.5, "seed": -1, "stop_token_ids": [99, 3],
      "min_tokens": 2, "max_tokens": 5, "ignore_eos": true, "logit_bias": {"7": -100, "0": 0.5}, "n": 3,
      "prompt_logprobs": 2, "priority": -4, "stop": ["a", "b"], "include_stop_str_in_output": true,
      "thinking_budget": 9, "return_token_ids": true, "request_id": "r1"})");
  const SamplingParams& sampling = request.sampling;
  EXPECT_EQ(request.model, "m");
  EXPECT_EQ(sampling.temperature, 0.0f);
  EXPECT_EQ(sampling.top_p, 0.5f);
  EXPECT_EQ(sampling.top_k, 7);
  EXPECT_EQ(sampling.min_p, 0.25f);
  EXPECT_EQ(sampling.presence_penalty, -2.0f);
  EXPECT_EQ(sampling.frequency_penalty, 2.0f);
  EXPECT_EQ(sampling.repetition_penalty, 1.5f);
  EXPECT_EQ(sampling.seed, UINT64_MAX);
  EXPECT_EQ(sampling.stop_token_ids, (std::vector<TokenId>{99, 3}));
  EXPECT_EQ(sampling.min_tokens, 2);
  EXPECT_EQ(sampling.max_tokens, 5);
  EXPECT_TRUE(sampling.ignore_eos);
  EXPECT_EQ(sampling.logit_bias, (std::vector<std::pair<TokenId, float>>{{7, -100.0f}, {0, 0.5f}}));
  EXPECT_EQ(sampling.prompt_logprobs, 2);
  EXPECT_EQ(request.shown_prompt_logprobs, 2);
  EXPECT_EQ(request.n, 3);
  EXPECT_EQ(request.priority, -4);
  EXPECT_EQ(request.stop, (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(request.include_stop);
  EXPECT_EQ(request.thinking_budget, 9);
  EXPECT_TRUE(request.return_token_ids);
  EXPECT_EQ(request.user_request_id, "r1");
}

TEST_P(SharedFields, HaveOtherForms) {
  EXPECT_EQ(parse(R"({"top_k": -1})").sampling.top_k, 0);
  EXPECT_EQ(parse(R"({"top_k": 0})").sampling.top_k, 0);
  EXPECT_EQ(parse(R"({"seed": 3.0})").sampling.seed, 3u);
  EXPECT_EQ(parse(R"({"stop": "a"})").stop, std::vector<std::string>{"a"});
  EXPECT_TRUE(parse(R"({"stop": []})").stop.empty());
  EXPECT_EQ(parse(R"({"thinking_token_budget": 0})").thinking_budget, 0);
  EXPECT_EQ(parse(R"({"max_completion_tokens": 3})").sampling.max_tokens, 3);
  EXPECT_EQ(parse(R"({"max_tokens": 100000000000})").sampling.max_tokens, INT32_MAX);
  EXPECT_GT(parse(R"({"top_p": 1e-300})").sampling.top_p, 0.0f);
}

TEST_P(SharedFields, OfAStreamReachTheRequest) {
  GenerationRequest request = parse(R"({"stream": true})");
  EXPECT_TRUE(request.stream);
  EXPECT_FALSE(request.include_usage);
  request = parse(R"({"stream": true, "stream_options": {"include_usage": true, "x": 1}})");
  EXPECT_TRUE(request.include_usage);
  EXPECT_FALSE(request.continuous_usage);
  EXPECT_EQ(request.unknown_fields, std::vector<std::string>{"stream_options.x"});
  request = parse(R"({"stream": true, "stream_options": {"include_usage": true, "continuous_usage_stats": true}})");
  EXPECT_TRUE(request.continuous_usage);
}

TEST_P(SharedFields, OfAnyTypeAreTakenOrRefusedButNeverFailOtherwise) {
  const std::vector<std::string> names = {"model",
                                          "messages",
                                          "prompt",
                                          "temperature",
                                          "top_p",
                                          "top_k",
                                          "min_p",
                                          "presence_penalty",
                                          "seed",
                                          "stop",
                                          "stop_token_ids",
                                          "min_tokens",
                                          "max_tokens",
                                          "max_completion_tokens",
                                          "ignore_eos",
                                          "logit_bias",
                                          "n",
                                          "best_of",
                                          "logprobs",
                                          "top_logprobs",
                                          "prompt_logprobs",
                                          "priority",
                                          "thinking_budget",
                                          "return_token_ids",
                                          "stream",
                                          "stream_options",
                                          "response_format",
                                          "structured_outputs",
                                          "guided_json",
                                          "guided_regex",
                                          "guided_choice",
                                          "guided_grammar",
                                          "tools",
                                          "tool_choice",
                                          "parallel_tool_calls",
                                          "chat_template_kwargs",
                                          "reasoning_effort",
                                          "enable_thinking",
                                          "modalities",
                                          "echo",
                                          "suffix",
                                          "user",
                                          "bad_words",
                                          "function_call",
                                          "include_reasoning"};
  const Json values = Json::parse(R"([null, true, 0, -1, 1.5, 1e300, 18446744073709551615, "", "x", [], [[]], [null],
      [{}], ["x", 1], {}, {"a": null}, {"type": "function"}, {"type": null, "function": []}, {"json": {}, "type": 1},
      [{"role": "user", "content": [{}]}], [{"type": "function", "function": {"name": "f", "parameters": null}}]])");
  int refused = 0;
  for (const std::string& name : names) {
    for (const Json& value : values) {
      Json with_value = body();
      with_value["stream"] = true;
      with_value[name] = value;
      try {
        parser()(with_value, test_defaults());
      } catch (const ApiError& error) {
        EXPECT_EQ(error.status(), 400);
        ++refused;
      }
    }
  }
  EXPECT_GT(refused, 0);
}

TEST_P(SharedFields, ThatNobodyKnowsAreListed) {
  EXPECT_EQ(parse(R"({"mirostat": 2, "user": "me", "x": null})").unknown_fields,
            (std::vector<std::string>{"mirostat", "x"}));
}

TEST_P(SharedFields, OfEveryStructureBecomeItsGrammar) {
  using Kind = GrammarSource::Kind;
  const auto grammar = [&](const char* fields) { return parse(fields).grammar.value(); };
  EXPECT_FALSE(parse(R"({"response_format": {"type": "text"}})").grammar);
  EXPECT_EQ(grammar(R"({"response_format": {"type": "json_object"}})").kind, Kind::json_object);
  EXPECT_EQ(grammar(R"({"structured_outputs": {"json_object": true}})").kind, Kind::json_object);
  for (const char* fields :
       {R"({"response_format": {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "array"}}}})",
        R"({"response_format": {"type": "json_schema", "json_schema":
            {"name": "a", "description": "b", "strict": true, "schema": {"type": "array"}}}})",
        R"({"response_format": {"type": "json_object", "schema": {"type": "array"}}})",
        R"({"guided_json": {"type": "array"}})", R"({"guided_json": "{\"type\": \"array\"}"})",
        R"({"structured_outputs": {"json": {"type": "array"}}})"}) {
    EXPECT_EQ(grammar(fields).kind, Kind::json_schema) << fields;
    EXPECT_EQ(grammar(fields).schema, Json({{"type", "array"}})) << fields;
  }
  for (const char* fields : {R"({"guided_regex": "a+"})", R"({"structured_outputs": {"regex": "a+"}})"}) {
    EXPECT_EQ(grammar(fields).kind, Kind::regex);
    EXPECT_EQ(grammar(fields).text, "a+");
  }
  for (const char* fields : {R"({"guided_choice": ["a", "b"]})", R"({"structured_outputs": {"choice": ["a", "b"]}})"}) {
    EXPECT_EQ(grammar(fields).kind, Kind::choice);
    EXPECT_EQ(grammar(fields).choices, (std::vector<std::string>{"a", "b"}));
  }
  for (const char* fields :
       {R"({"guided_grammar": "root ::= x"})", R"({"structured_outputs": {"grammar": "root ::= x"}})"}) {
    EXPECT_EQ(grammar(fields).kind, Kind::ebnf);
    EXPECT_EQ(grammar(fields).text, "root ::= x");
  }
}

}  // namespace
}  // namespace sluice
