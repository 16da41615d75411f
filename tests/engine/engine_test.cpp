#include "engine/engine.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "fake_engine.h"

namespace sluice {
namespace {

Request greedy(std::vector<TokenId> prompt, int max_tokens, TokenCallback on_event) {
  Request request;
  request.prompt = std::move(prompt);
  request.sampling.temperature = 0.0f;
  request.sampling.max_tokens = max_tokens;
  request.on_event = std::move(on_event);
  return request;
}

SamplingParams greedy_params() {
  SamplingParams params;
  params.temperature = 0.0f;
  return params;
}

TEST(Engine, GivesTheTokensOfTheModel) {
  FakeEngine engine({});
  EXPECT_FALSE(engine->failed());
  engine->submit(greedy({3, 1, 4, 1, 5}, 20, engine.recorder.callback(0)));
  const Record record = engine.recorder.wait(0);
  EXPECT_EQ(record.tokens, expected_tokens({3, 1, 4, 1, 5}, greedy_params(), 20));
  EXPECT_EQ(record.last().finish_reason, FinishReason::length);
  EXPECT_EQ(record.last().prompt_tokens, 5);
  EXPECT_EQ(record.last().output_tokens, 20);
}

TEST(Engine, ChunksOfAPromptGiveTheTokensOfTheWhole) {
  std::mt19937 random(1);
  const std::vector<TokenId> prompt = random_prompt(random, 230);
  for (const std::int64_t rows : {4, 7, 64, 100, 300}) {
    FakeEngine engine({.max_batched_tokens = rows});
    engine->submit(greedy(prompt, 10, engine.recorder.callback(0)));
    EXPECT_EQ(engine.recorder.wait(0).tokens, expected_tokens(prompt, greedy_params(), 10)) << rows << " rows a step";
  }
}

TEST(Engine, ManyRequestsGiveWhatEachGivesAlone) {
  FakeEngine engine({.blocks = 40, .slots = 16});
  std::mt19937 random(2);
  std::vector<std::vector<TokenId>> prompts;
  for (int i = 0; i < 64; ++i) prompts.push_back(random_prompt(random, 1 + random() % 150));
  for (int i = 0; i < 64; ++i)
    engine->submit(greedy(prompts[static_cast<std::size_t>(i)], 1 + i, engine.recorder.callback(i)));
  for (int i = 0; i < 64; ++i) {
    const auto& prompt = prompts[static_cast<std::size_t>(i)];
    EXPECT_EQ(engine.recorder.wait(i).tokens,
              expected_tokens(prompt, greedy_params(), static_cast<std::size_t>(1 + i)));
  }
  EXPECT_EQ(engine->stats().finished, 64u);
}

TEST(Engine, PreemptedRequestsGiveTheSameTokens) {
  FakeEngine engine({.blocks = 5, .slots = 4});
  std::mt19937 random(3);
  SamplingParams params;
  params.frequency_penalty = 0.5f;
  params.repetition_penalty = 1.2f;
  params.max_tokens = 190;
  std::vector<std::vector<TokenId>> prompts;
  for (int i = 0; i < 6; ++i) {
    prompts.push_back(random_prompt(random, 50));
    Request request;
    request.prompt = prompts.back();
    request.sampling = params;
    request.sampling.seed = 100 + i;
    request.on_event = engine.recorder.callback(i);
    engine->submit(std::move(request));
  }
  for (int i = 0; i < 6; ++i) {
    params.seed = 100 + i;
    EXPECT_EQ(engine.recorder.wait(i).tokens, expected_tokens(prompts[static_cast<std::size_t>(i)], params, 190));
  }
  EXPECT_GT(engine->stats().preemptions, 0u);
}

TEST(Engine, EndsAtAStopTokenOfTheModelOrTheRequest) {
  const std::vector<TokenId> expected = expected_tokens({1, 2, 3}, greedy_params(), 10);
  EngineOptions options;
  options.stop_tokens = {expected[4]};
  FakeEngine engine({}, options);
  engine->submit(greedy({1, 2, 3}, 50, engine.recorder.callback(0)));
  Request own = greedy({1, 2, 3}, 50, engine.recorder.callback(1));
  own.sampling.stop_token_ids = {expected[2]};
  engine->submit(std::move(own));
  Request ignoring = greedy({1, 2, 3}, 8, engine.recorder.callback(2));
  ignoring.sampling.ignore_eos = true;
  engine->submit(std::move(ignoring));

  const Record model_stop = engine.recorder.wait(0), own_stop = engine.recorder.wait(1),
               no_stop = engine.recorder.wait(2);
  EXPECT_EQ(model_stop.tokens, std::vector<TokenId>(expected.begin(), expected.begin() + 5));
  EXPECT_EQ(model_stop.last().finish_reason, FinishReason::stop);
  EXPECT_EQ(own_stop.tokens.size(), 3u);
  EXPECT_EQ(own_stop.last().finish_reason, FinishReason::stop);
  EXPECT_EQ(no_stop.tokens.size(), 8u);
  EXPECT_EQ(no_stop.last().finish_reason, FinishReason::length);
}

TEST(Engine, DoesNotStopBeforeTheFewestTokens) {
  const std::vector<TokenId> expected = expected_tokens({1, 2, 3}, greedy_params(), 10);
  EngineOptions options;
  options.stop_tokens = {expected[0], expected[1]};
  FakeEngine engine({}, options);
  Request request = greedy({1, 2, 3}, 50, engine.recorder.callback(0));
  request.sampling.min_tokens = 6;
  engine->submit(std::move(request));
  EXPECT_GE(engine.recorder.wait(0).tokens.size(), 6u);
}

class StopAfter : public StopCheck {
 public:
  explicit StopAfter(int count) : left_(count) {}
  bool stops_at(TokenId) override { return --left_ == 0; }

 private:
  int left_;
};

TEST(Engine, EndsWhereTheStopCheckSaysAndReportsThatToken) {
  FakeEngine engine({});
  Request request = greedy({1, 2, 3}, 50, engine.recorder.callback(0));
  request.stop = std::make_unique<StopAfter>(7);
  engine->submit(std::move(request));
  const Record record = engine.recorder.wait(0);
  EXPECT_EQ(record.tokens.size(), 7u);
  EXPECT_EQ(record.last().finish_reason, FinishReason::stop);
  EXPECT_TRUE(record.last().token.has_value());
}

class OnlyEven : public TokenFilter {
 public:
  void mask(std::span<float> logits) override {
    for (std::size_t i = 1; i < logits.size(); i += 2) logits[i] = -std::numeric_limits<float>::infinity();
  }
  void accept(TokenId token) override {
    if (token == 14) throw RequestError("the grammar knows no 14");
  }
};

TEST(Engine, AFilterNarrowsTheChoiceAndItsFailureEndsItsRequestOnly) {
  FakeEngine engine({});
  Request filtered = greedy({1, 2, 3}, 30, engine.recorder.callback(0));
  filtered.filter = std::make_unique<OnlyEven>();
  engine->submit(std::move(filtered));
  Request failing = greedy({1, 2, 3}, 30, engine.recorder.callback(1));
  failing.filter = std::make_unique<OnlyEven>();
  failing.sampling.logit_bias = {{14, 1000.0f}};
  engine->submit(std::move(failing));
  for (const TokenId token : engine.recorder.wait(0).tokens) EXPECT_EQ(token % 2, 0);
  const Record failed = engine.recorder.wait(1);
  EXPECT_EQ(failed.last().finish_reason, FinishReason::error);
  EXPECT_EQ(failed.last().error, "the grammar knows no 14");
}

TEST(Engine, EndsAtTheContextLength) {
  FakeEngine engine({.max_model_len = 100});
  engine->submit(greedy(std::vector<TokenId>(99, 5), 0, engine.recorder.callback(0)));
  engine->submit(greedy(std::vector<TokenId>(60, 5), 1000, engine.recorder.callback(1)));
  EXPECT_EQ(engine.recorder.wait(0).tokens.size(), 1u);
  EXPECT_EQ(engine.recorder.wait(1).tokens.size(), 40u);
  EXPECT_EQ(engine.recorder.wait(1).last().finish_reason, FinishReason::length);
}

TEST(Engine, NonFiniteLogitsEndThatRequestOnly) {
  FakeEngine engine({});
  engine->submit(greedy({1, 2, fake_poison_token}, 10, engine.recorder.callback(0)));
  engine->submit(greedy({1, 2, 3}, 10, engine.recorder.callback(1)));
  const Record failed = engine.recorder.wait(0);
  EXPECT_EQ(failed.last().finish_reason, FinishReason::error);
  EXPECT_NE(failed.last().error.find("not finite"), std::string::npos) << failed.last().error;
  EXPECT_TRUE(failed.tokens.empty());
  EXPECT_EQ(engine.recorder.wait(1).tokens, expected_tokens({1, 2, 3}, greedy_params(), 10));
}

TEST(Engine, ACancelledRequestEndsWithThatReason) {
  FakeEngine engine({});
  engine.plan.held = true;
  const RequestId id = engine->submit(greedy({1, 2, 3}, 0, engine.recorder.callback(0)));
  engine->cancel(id);
  engine.plan.go_on();
  const Record record = engine.recorder.wait(0);
  EXPECT_EQ(record.last().finish_reason, FinishReason::cancelled);
  EXPECT_FALSE(record.last().token.has_value());
}

TEST(Engine, CancellingFromACallbackMakesItTheLastToken) {
  FakeEngine engine({});
  engine->submit(greedy({1, 2, 3}, 0, engine.recorder.callback(0, [&](const TokenEvent& event) {
    if (event.output_tokens == 5) engine->cancel(event.request);
  })));
  const Record record = engine.recorder.wait(0);
  EXPECT_EQ(record.last().finish_reason, FinishReason::cancelled);
  EXPECT_EQ(record.tokens.size(), 5u);
}

TEST(Engine, AQueuedRequestCanBeCancelled) {
  FakeEngine engine({.slots = 1});
  engine.plan.held = true;
  engine->submit(greedy({1, 2, 3}, 0, engine.recorder.callback(0)));
  const RequestId queued = engine->submit(greedy({4, 5}, 10, engine.recorder.callback(1)));
  engine->cancel(queued);
  engine.plan.go_on();
  const Record record = engine.recorder.wait(1);
  EXPECT_EQ(record.last().finish_reason, FinishReason::cancelled);
  EXPECT_TRUE(record.tokens.empty());
}

TEST(Engine, CancellingUnknownOrEndedRequestsDoesNothing) {
  FakeEngine engine({});
  const RequestId id = engine->submit(greedy({1, 2, 3}, 3, engine.recorder.callback(0)));
  engine.recorder.wait(0);
  engine->cancel(id);
  engine->cancel(12345);
  engine->submit(greedy({1, 2, 3}, 3, engine.recorder.callback(1)));
  EXPECT_EQ(engine.recorder.wait(1).last().finish_reason, FinishReason::length);
  EXPECT_EQ(engine.recorder.late_events(), 0);
}

TEST(Engine, ARequestCanBeSubmittedFromACallback) {
  FakeEngine engine({});
  engine->submit(greedy({1, 2, 3}, 2, engine.recorder.callback(0, [&](const TokenEvent& event) {
    if (event.finish_reason != FinishReason::none) engine->submit(greedy({7}, 4, engine.recorder.callback(1)));
  })));
  EXPECT_EQ(engine.recorder.wait(1).tokens, expected_tokens({7}, greedy_params(), 4));
}

TEST(Engine, ARequestWhoseCallbackThrowsEndsAlone) {
  FakeEngine engine({});
  engine->submit(greedy({1, 2, 3}, 0, [](const TokenEvent&) { throw std::runtime_error("the client is gone"); }));
  engine->submit(greedy({1, 2, 3}, 30, engine.recorder.callback(1)));
  EXPECT_EQ(engine.recorder.wait(1).tokens.size(), 30u);
  EXPECT_EQ(engine->stats().failed, 1u);
  EXPECT_EQ(engine->stats().running, 0);
}

TEST(Engine, AFailingDeviceEndsEveryRequestAndRefusesNewOnes) {
  FakeEngine engine({.slots = 1});
  engine.plan.held = true;
  engine.plan.steps_until_failure = 3;
  engine->submit(greedy({1, 2, 3}, 0, engine.recorder.callback(0)));
  engine->submit(greedy({1, 2, 3}, 0, engine.recorder.callback(1)));
  engine.plan.go_on();
  for (int i = 0; i < 2; ++i) {
    const Record record = engine.recorder.wait(i);
    EXPECT_EQ(record.last().finish_reason, FinishReason::error);
    EXPECT_NE(record.last().error.find("the fake device is gone"), std::string::npos) << record.last().error;
  }
  EXPECT_THROW(engine->submit(greedy({1}, 1, engine.recorder.callback(2))), DeviceError);
  EXPECT_TRUE(engine->failed());
  EXPECT_EQ(engine->failure(), "the engine stopped: the fake device is gone");
  EXPECT_EQ(engine->stats().blocks_used, 0);
  EXPECT_EQ(engine->stats().failed, 2u);
}

TEST(Engine, DestructionCancelsWhatRuns) {
  FakeEngine engine({.blocks = 16, .slots = 1, .max_model_len = 1024});
  engine.plan.step_time = std::chrono::milliseconds(5);
  engine->submit(greedy({1, 2, 3}, 0, engine.recorder.callback(0)));
  engine->submit(greedy({1, 2, 3}, 0, engine.recorder.callback(1)));
  engine.engine.reset();
  EXPECT_EQ(engine.recorder.now(0).last().finish_reason, FinishReason::cancelled);
  EXPECT_EQ(engine.recorder.now(1).last().finish_reason, FinishReason::cancelled);
}

TEST(Engine, SleepsWhenThereIsNothingToDo) {
  FakeEngine engine({});
  engine->submit(greedy({1, 2, 3}, 3, engine.recorder.callback(0)));
  engine.recorder.wait(0);
  const int steps = engine.plan.steps;
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(engine.plan.steps, steps);
  EXPECT_EQ(steps, 3);
}

TEST(Engine, TimesGrowFromQueueToFirstTokenToTheEnd) {
  FakeEngine engine({});
  engine->submit(greedy({1, 2, 3}, 50, engine.recorder.callback(0)));
  const RequestTimings timings = engine.recorder.wait(0).last().timings;
  EXPECT_GT(timings.queued.count(), 0);
  EXPECT_GT(timings.first_token, timings.queued);
  EXPECT_GT(timings.total, timings.first_token);
}

TEST(Engine, CountsWhatItDid) {
  FakeEngine engine({});
  engine->submit(greedy({1, 2, 3}, 5, engine.recorder.callback(0)));
  engine.recorder.wait(0);
  const EngineStats stats = engine->stats();
  EXPECT_EQ(stats.prompt_tokens, 3u);
  EXPECT_EQ(stats.generated_tokens, 5u);
  EXPECT_EQ(stats.finished, 1u);
  EXPECT_EQ(stats.running + stats.waiting, 0);
  EXPECT_EQ(stats.blocks_used, 0);
  EXPECT_EQ(stats.state_slots_used, 0);
  EXPECT_EQ(stats.blocks_total, 8);
  EXPECT_EQ(stats.state_slots_total, 4);
}

TEST(Engine, CountsTheRowsOfItsSteps) {
  FakeEngine engine({});
  engine->submit(greedy(std::vector<TokenId>(20, 5), 4, engine.recorder.callback(0)));
  engine.recorder.wait(0);
  const StepSizes sizes = engine->stats().iteration_tokens;
  EXPECT_EQ(sizes.rows, 23u);
  EXPECT_EQ(sizes.up_to[0], 3u) << "decoding steps have one row";
  EXPECT_EQ(sizes.up_to[2], 3u) << "up to 16";
  EXPECT_EQ(sizes.up_to[3], 4u) << "up to 32: the prompt too";
  EXPECT_EQ(sizes.up_to.back(), engine->stats().steps);
}

TEST(Engine, RefusesMoreWaitingRequestsThanAllowed) {
  EngineOptions options;
  options.max_queued = 2;
  FakeEngine engine({.slots = 1}, options);
  engine.plan.held = true;
  engine->submit(greedy({1, 2, 3}, 3, engine.recorder.callback(0)));
  while (engine->stats().running == 0) std::this_thread::yield();
  engine->submit(greedy({1, 2, 3}, 3, engine.recorder.callback(1)));
  engine->submit(greedy({1, 2, 3}, 3, engine.recorder.callback(2)));
  EXPECT_EQ(engine->stats().waiting, 2);
  EXPECT_THROW(engine->submit(greedy({1, 2, 3}, 3, engine.recorder.callback(3))), QueueFullError);
  engine.plan.go_on();
  for (int i = 0; i < 3; ++i) EXPECT_EQ(engine.recorder.wait(i).tokens.size(), 3u);
  EXPECT_NO_THROW(engine->submit(greedy({1, 2, 3}, 3, engine.recorder.callback(3))));
  engine.recorder.wait(3);
}

TEST(Engine, UnseededRequestsDifferFromEachOtherAndRepeatWithTheEnginesSeed) {
  std::vector<std::vector<TokenId>> first, second;
  for (auto* outputs : {&first, &second}) {
    FakeEngine engine({});
    for (int i = 0; i < 2; ++i) {
      Request request = greedy({1, 2, 3}, 20, engine.recorder.callback(i));
      request.sampling.temperature = 2.0f;
      engine->submit(std::move(request));
    }
    for (int i = 0; i < 2; ++i) outputs->push_back(engine.recorder.wait(i).tokens);
  }
  EXPECT_NE(first[0], first[1]);
  EXPECT_EQ(first, second);
}

TEST(Engine, OptionsOutOfRangeAreNamed) {
  FakeOps::Plan plan;
  auto build = [&](auto change) {
    EngineOptions options;
    change(options);
    try {
      Engine engine(std::make_unique<FakeOps>(plan), std::make_unique<FakeModel>(), options);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_EQ(build([](EngineOptions& o) { o.max_num_seqs = -2; }), "max_num_seqs is -2; allowed is 0 (chosen) or more");
  EXPECT_EQ(build([](EngineOptions& o) { o.memory_utilization = 1.5; }),
            "memory_utilization is 1.5; allowed is above 0, up to 1");
  EXPECT_EQ(build([](EngineOptions& o) { o.vocabulary_size = 97; }),
            "vocabulary_size is 97; allowed is 0 (all) to the model's 96");
  EXPECT_EQ(build([](EngineOptions& o) { o.max_num_seqs = 8, o.max_batched_tokens = 4; }),
            "max_batched_tokens is 4; allowed is max_num_seqs, 8, or more");
  EXPECT_EQ(build([](EngineOptions& o) { o.max_model_len = 2000; }),
            "max_model_len is 2000, but the model's context has 1024 tokens: lower max_model_len");
  EXPECT_EQ(build([](EngineOptions&) {}), "accepted");
}

}  // namespace
}  // namespace sluice
