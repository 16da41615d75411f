// Log-probabilities of the prompt: those of each token in its place, however the prompt was cut and interrupted.
#include <algorithm>
#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

#include "fake_engine.h"

namespace sluice {
namespace {

constexpr std::size_t alternatives = 3;

Request scored(std::vector<TokenId> prompt, int max_tokens, TokenCallback on_event) {
  Request request;
  request.prompt = std::move(prompt);
  request.sampling.temperature = 0.0f;
  request.sampling.max_tokens = max_tokens;
  request.sampling.prompt_logprobs = alternatives;
  request.on_event = std::move(on_event);
  return request;
}

/// Log-softmax of the fake model's row after a history, over the ids that can be sampled.
std::vector<double> log_softmax_after(std::span<const TokenId> history) {
  const std::vector<float> logits = fake_logits(history);
  double sum = 0.0;
  for (int id = 0; id < fake_poison_token; ++id)
    sum += std::exp(static_cast<double>(logits[static_cast<std::size_t>(id)]));
  std::vector<double> values;
  for (const float logit : logits) values.push_back(static_cast<double>(logit) - std::log(sum));
  values.resize(fake_poison_token);
  return values;
}

void expect_logprobs(const std::vector<TokenId>& prompt, const std::vector<PromptLogprob>& found) {
  ASSERT_EQ(found.size(), prompt.size() - 1);
  for (std::size_t i = 0; i < found.size(); ++i) {
    const std::vector<double> expected = log_softmax_after(std::span(prompt).first(i + 1));
    std::vector<TokenId> order(expected.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](TokenId a, TokenId b) {
      return expected[static_cast<std::size_t>(a)] > expected[static_cast<std::size_t>(b)];
    });
    const TokenId token = prompt[i + 1];
    ASSERT_EQ(found[i].token, token) << "entry " << i;
    ASSERT_NEAR(static_cast<double>(found[i].logprob), expected[static_cast<std::size_t>(token)], 1e-5) << i;
    ASSERT_EQ(found[i].rank, 1 + std::distance(order.begin(), std::find(order.begin(), order.end(), token))) << i;
    ASSERT_EQ(found[i].top.size(), alternatives);
    for (std::size_t k = 0; k < alternatives; ++k) {
      ASSERT_EQ(found[i].top[k].token, order[k]) << "entry " << i;
      ASSERT_NEAR(static_cast<double>(found[i].top[k].logprob), expected[static_cast<std::size_t>(order[k])], 1e-5);
    }
  }
}

void expect_reported_once(const Record& record, const std::vector<TokenId>& prompt) {
  ASSERT_FALSE(record.tokens.empty()) << record.last().error;
  expect_logprobs(prompt, record.events.front().prompt_logprobs);
  for (std::size_t i = 1; i < record.events.size(); ++i) {
    ASSERT_TRUE(record.events[i].prompt_logprobs.empty()) << "again with token " << i;
  }
}

TEST(PromptLogprobs, AreThoseOfEachTokenInItsPlaceHoweverThePromptIsCut) {
  std::mt19937 random(1);
  for (const std::int64_t rows : {4, 7, 64, 100, 300}) {
    FakeEngine engine({.max_batched_tokens = rows});
    for (const std::size_t length : {1, 2, 16, 17, 64, 65, 230}) {
      const std::vector<TokenId> prompt = random_prompt(random, length);
      engine->submit(scored(prompt, 5, engine.recorder.callback(static_cast<int>(length))));
      const Record record = engine.recorder.wait(static_cast<int>(length));
      EXPECT_EQ(record.tokens.size(), 5u);
      expect_reported_once(record, prompt);
    }
  }
}

TEST(PromptLogprobs, DoNotChangeWhatRunsBesideThem) {
  FakeEngine engine({.blocks = 40, .slots = 8});
  std::mt19937 random(2);
  SamplingParams params;
  params.temperature = 0.0f;
  std::vector<std::vector<TokenId>> prompts;
  for (int i = 0; i < 24; ++i) {
    prompts.push_back(random_prompt(random, 1 + random() % 200));
    Request request = scored(prompts.back(), 20, engine.recorder.callback(i));
    if (i % 2 == 0) request.sampling.prompt_logprobs = -1;
    engine->submit(std::move(request));
  }
  for (int i = 0; i < 24; ++i) {
    const auto& prompt = prompts[static_cast<std::size_t>(i)];
    const Record record = engine.recorder.wait(i);
    EXPECT_EQ(record.tokens, expected_tokens(prompt, params, 20)) << "request " << i;
    if (i % 2 == 1) {
      expect_reported_once(record, prompt);
    } else {
      EXPECT_TRUE(record.events.front().prompt_logprobs.empty());
    }
  }
}

TEST(PromptLogprobs, ComeOnceFromASequenceThatWasInterruptedInItsPromptAndInItsReply) {
  FakeEngine engine({.blocks = 5, .slots = 4, .max_batched_tokens = 40});
  engine.plan.step_time = std::chrono::milliseconds(1);
  std::mt19937 random(3);
  std::vector<std::vector<TokenId>> prompts;
  for (int i = 0; i < 24; ++i) {
    prompts.push_back(random_prompt(random, 100 + random() % 100));
    Request request = scored(prompts.back(), 50, engine.recorder.callback(i));
    request.priority = -i;
    engine->submit(std::move(request));
    std::this_thread::sleep_for(std::chrono::milliseconds(3));
  }
  for (int i = 0; i < 24; ++i) expect_reported_once(engine.recorder.wait(i), prompts[static_cast<std::size_t>(i)]);
  EXPECT_GT(engine->stats().preemptions, 10u);
}

TEST(PromptLogprobs, ARowThatIsNotFiniteEndsTheRequest) {
  FakeEngine engine({});
  engine->submit(scored({1, 2, fake_poison_token, 4, 5}, 10, engine.recorder.callback(0)));
  const Record record = engine.recorder.wait(0);
  EXPECT_EQ(record.last().finish_reason, FinishReason::error);
  EXPECT_EQ(record.last().error, "the model's logits after 3 tokens of the prompt are not finite numbers");
}

}  // namespace
}  // namespace sluice
