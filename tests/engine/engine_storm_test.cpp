// A thousand random submits, cancels and preemptions through the whole engine.
#include <cmath>
#include <map>

#include <gtest/gtest.h>

#include "fake_engine.h"

namespace sluice {
namespace {

struct Sent {
  std::vector<TokenId> prompt;
  SamplingParams params;
  RequestId id = 0;
};

Sent random_request(std::mt19937& random) {
  Sent sent;
  sent.prompt = random_prompt(random, 1 + random() % 120);
  sent.params.temperature = random() % 2 == 0 ? 0.0f : 1.5f;
  sent.params.seed = random();
  sent.params.repetition_penalty = random() % 3 == 0 ? 1.3f : 1.0f;
  sent.params.top_k = random() % 3 == 0 ? 5 : 0;
  sent.params.max_tokens = 1 + static_cast<int>(random() % 60);
  return sent;
}

void expect_nan(const Tensor& part) {
  for (std::int64_t i = 0; i < part.elements(); ++i) ASSERT_TRUE(std::isnan(part.as<float>()[i])) << "element " << i;
}

void expect_poisoned(const FakeModel& model) {
  for (const std::int32_t block : model.blocks_written()) {
    for (const KvView& layer : model.caches_seen().kv) {
      expect_nan(layer.keys.slice(0, block, 1));
      expect_nan(layer.values.slice(0, block, 1));
    }
  }
  for (const std::int32_t slot : model.slots_written()) {
    for (const StateView& layer : model.caches_seen().state) {
      expect_nan(layer.conv.slice(0, slot, 1));
      expect_nan(layer.recurrent.slice(0, slot, 1));
    }
  }
}

TEST(EngineStorm, EndsWithAllCountersAtZeroAndTheTokensOfSoloRuns) {
  FakeEngine engine({.blocks = 9, .slots = 6, .max_model_len = 200, .max_batched_tokens = 100});
  std::mt19937 random(11);
  std::map<int, Sent> sent;
  for (int key = 0; key < 1000; ++key) {
    Sent next = random_request(random);
    Request request;
    request.prompt = next.prompt;
    request.sampling = next.params;
    request.priority = static_cast<int>(random() % 3);
    const int cancel_at = random() % 5 == 0 ? static_cast<int>(random() % 30) : 0;
    request.on_event = engine.recorder.callback(key, [&engine, cancel_at](const TokenEvent& event) {
      if (cancel_at > 0 && event.output_tokens == cancel_at) engine->cancel(event.request);
    });
    next.id = engine->submit(std::move(request));
    sent[key] = std::move(next);
    if (random() % 6 == 0) engine->cancel(sent[static_cast<int>(random() % sent.size())].id);
    if (random() % 10 == 0) engine.recorder.wait_events(key, 1 + random() % 3);
  }
  int finished = 0;
  for (const auto& [key, request] : sent) {
    const Record record = engine.recorder.wait(key);
    const FinishReason reason = record.last().finish_reason;
    ASSERT_TRUE(reason == FinishReason::length || reason == FinishReason::cancelled) << record.last().error;
    ASSERT_EQ(record.tokens, expected_tokens(request.prompt, request.params, record.tokens.size()))
        << "request " << key;
    if (reason == FinishReason::length) ++finished;
  }
  const EngineStats stats = engine->stats();
  EXPECT_EQ(stats.running + stats.waiting, 0);
  EXPECT_EQ(stats.blocks_used, 0);
  EXPECT_EQ(stats.state_slots_used, 0);
  EXPECT_EQ(stats.finished, static_cast<std::uint64_t>(finished));
  EXPECT_EQ(stats.finished + stats.cancelled, 1000u);
  EXPECT_GT(finished, 300);
  EXPECT_GT(stats.cancelled, 100u);
  EXPECT_GT(stats.preemptions, 50u);
  EXPECT_EQ(engine.recorder.late_events(), 0);
  EXPECT_GT(engine.model->blocks_written().size(), 6u);
  EXPECT_GT(engine.model->slots_written().size(), 3u);
  expect_poisoned(*engine.model);
}

}  // namespace
}  // namespace sluice
