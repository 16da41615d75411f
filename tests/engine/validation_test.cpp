#include "engine/validation.h"

#include <functional>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "base/error.h"

namespace sluice {
namespace {

/// The complaint about a request that is right but for one change.
std::string complaint(const std::function<void(Request&)>& change) {
  Request request;
  request.prompt = {1, 2, 3};
  change(request);
  try {
    check_request(request, {.max_model_len = 8, .embedded_ids = 100, .vocabulary = 90});
  } catch (const RequestError& error) {
    return error.what();
  }
  return "accepted";
}

std::string complaint_of(const std::function<void(SamplingParams&)>& change) {
  return complaint([&](Request& request) { change(request.sampling); });
}

TEST(Validation, AcceptsWhatIsInRange) {
  EXPECT_EQ(complaint([](Request&) {}), "accepted");
  EXPECT_EQ(complaint([](Request& r) { r.prompt = {0, 99, 95, 1, 2, 3, 4}; }), "accepted");
  EXPECT_EQ(complaint_of([](SamplingParams& p) { p.temperature = 0.0f, p.top_p = 0.001f, p.min_p = 1.0f; }),
            "accepted");
  EXPECT_EQ(complaint_of([](SamplingParams& p) { p.logit_bias = {{0, -100.0f}, {89, 100.0f}}; }), "accepted");
}

TEST(Validation, NamesWhatIsWrongWithThePrompt) {
  EXPECT_EQ(complaint([](Request& r) { r.prompt.clear(); }), "prompt is empty; at least one token is needed");
  EXPECT_EQ(complaint([](Request& r) { r.prompt.assign(8, 1); }),
            "prompt has 8 tokens, which leaves no room for a reply; allowed are at most 7 (max_model_len is 8)");
  EXPECT_EQ(complaint([](Request& r) { r.prompt[2] = 100; }), "prompt[2] is 100; allowed are token ids from 0 to 99");
  EXPECT_EQ(complaint([](Request& r) { r.prompt[0] = -1; }), "prompt[0] is -1; allowed are token ids from 0 to 99");
}

TEST(Validation, NamesTheParameterWhatWasFoundAndWhatIsAllowed) {
  EXPECT_EQ(complaint_of([](SamplingParams& p) { p.temperature = -1.0f; }), "temperature is -1; allowed is 0 or more");
  EXPECT_EQ(complaint_of([](SamplingParams& p) { p.temperature = std::numeric_limits<float>::quiet_NaN(); }),
            "temperature is nan; allowed is 0 or more");
  EXPECT_EQ(complaint_of([](SamplingParams& p) { p.top_k = -1; }), "top_k is -1; allowed is 0 (all) or more");
  EXPECT_EQ(complaint_of([](SamplingParams& p) { p.top_p = 0.0f; }), "top_p is 0; allowed is above 0, up to 1");
  EXPECT_EQ(complaint_of([](SamplingParams& p) { p.top_p = 1.5f; }), "top_p is 1.5; allowed is above 0, up to 1");
  EXPECT_EQ(complaint_of([](SamplingParams& p) { p.min_p = 2.0f; }), "min_p is 2; allowed is 0 to 1");
  EXPECT_EQ(complaint_of([](SamplingParams& p) { p.repetition_penalty = 0.0f; }),
            "repetition_penalty is 0; allowed is 0.01 to 100");
  EXPECT_EQ(complaint_of([](SamplingParams& p) { p.presence_penalty = 2.5f; }),
            "presence_penalty is 2.5; allowed is -2 to 2");
  EXPECT_EQ(complaint_of([](SamplingParams& p) { p.frequency_penalty = -3.0f; }),
            "frequency_penalty is -3; allowed is -2 to 2");
  EXPECT_EQ(complaint_of([](SamplingParams& p) { p.max_tokens = -1; }),
            "max_tokens is -1; allowed is 0 (up to the context length) or more");
  EXPECT_EQ(complaint_of([](SamplingParams& p) { p.min_tokens = -1; }), "min_tokens is -1; allowed is 0 or more");
  EXPECT_EQ(complaint_of([](SamplingParams& p) { p.max_tokens = 3, p.min_tokens = 4; }),
            "min_tokens is 4; allowed is at most max_tokens, 3");
  EXPECT_EQ(complaint_of([](SamplingParams& p) { p.top_logprobs = 101; }),
            "top_logprobs is 101; allowed is -1 (none) to 100");
  EXPECT_EQ(complaint_of([](SamplingParams& p) { p.prompt_logprobs = -2; }),
            "prompt_logprobs is -2; allowed is -1 (none) to 100");
}

TEST(Validation, NamesTokensOutOfRange) {
  EXPECT_EQ(complaint_of([](SamplingParams& p) { p.logit_bias = {{90, 1.0f}}; }),
            "a token of logit_bias is 90; allowed are token ids from 0 to 89");
  EXPECT_EQ(complaint_of([](SamplingParams& p) { p.logit_bias = {{5, std::numeric_limits<float>::infinity()}}; }),
            "logit_bias of token 5 is inf; allowed is a finite number");
  EXPECT_EQ(complaint_of([](SamplingParams& p) { p.stop_token_ids = {-7}; }),
            "a token of stop_token_ids is -7; allowed are token ids from 0 to 99");
}

}  // namespace
}  // namespace sluice
