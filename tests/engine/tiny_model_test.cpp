// The bundled checkpoint through the whole engine: what a request gets does not depend on what runs beside it.
#include <memory>
#include <random>

#include <gtest/gtest.h>

#include "engine/engine.h"
#include "recorder.h"
#include "support/model_runner.h"

namespace sluice::test {
namespace {

constexpr int conversations = 64;
constexpr int reply_tokens = 16;
constexpr float excused_gap = 1e-4f;  // between the two best tokens; the noise of float32 is below it

struct TinyEngine {
  explicit TinyEngine(int max_num_seqs) {
    auto ops = make_cpu_backend({.threads = 2, .compute = Compute::f32, .instruction_set = ""});
    auto model = load_model(read_config(tiny_model()), *checkpoint, *ops);
    EngineOptions options;
    options.max_model_len = 512;
    options.max_num_seqs = max_num_seqs;
    options.poison_freed = true;
    engine = std::make_unique<Engine>(std::move(ops), std::move(model), options);
  }
  void submit(int key, const std::vector<TokenId>& prompt, int priority = 0) {
    Request request;
    request.prompt = prompt;
    request.priority = priority;
    request.sampling.temperature = 0.0f;
    request.sampling.max_tokens = reply_tokens;
    request.sampling.top_logprobs = 2;
    request.on_event = recorder.callback(key);
    engine->submit(std::move(request));
  }

  std::unique_ptr<Checkpoint> checkpoint = open_safetensors(tiny_model());
  Recorder recorder;
  std::unique_ptr<Engine> engine;
};

/// Beginnings of real chats, each with a random part of its own.
std::vector<std::vector<TokenId>> random_prompts() {
  const Json chats = parse_json(read_text_file(tiny_model() / "expected/chats.json"), "chats.json");
  std::mt19937 random(3);
  std::vector<std::vector<TokenId>> prompts;
  while (prompts.size() < conversations) {
    auto prompt = chats[random() % chats.size()]["prompt_ids"].get<std::vector<TokenId>>();
    prompt.resize(std::min<std::size_t>(prompt.size(), 1 + random() % 250));
    for (std::size_t i = random() % 30; i > 0; --i) prompt.push_back(static_cast<TokenId>(random() % 1600));
    prompts.push_back(std::move(prompt));
  }
  return prompts;
}

const std::vector<std::vector<TokenId>>& prompts() {
  static const auto all = random_prompts();
  return all;
}

const std::vector<Record>& solo_runs() {
  static const auto records = [] {
    TinyEngine alone(1);
    std::vector<Record> all;
    for (int i = 0; i < conversations; ++i) {
      alone.submit(i, prompts()[static_cast<std::size_t>(i)]);
      all.push_back(alone.recorder.wait(i));
    }
    return all;
  }();
  return records;
}

/// Equal tokens up to a first difference where the two best were too close to tell.
void expect_like_solo_run(int key, const Record& together) {
  const Record& alone = solo_runs()[static_cast<std::size_t>(key)];
  ASSERT_EQ(together.last().finish_reason, FinishReason::length) << together.last().error;
  ASSERT_EQ(together.tokens.size(), static_cast<std::size_t>(reply_tokens));
  for (std::size_t i = 0; i < together.tokens.size(); ++i) {
    if (together.tokens[i] == alone.tokens[i]) continue;
    const auto& best = alone.events[i].top_logprobs;
    const float gap = best.at(0).logprob - best.at(1).logprob;
    EXPECT_LT(gap, excused_gap) << "conversation " << key << ", token " << i;
    std::printf("conversation %d differs from token %zu on, where the gap is %g\n", key, i, static_cast<double>(gap));
    return;
  }
}

TEST(TinyModel, ConversationsAtOnceGiveTheTokensOfOneAtATime) {
  TinyEngine together(conversations);
  for (int i = 0; i < conversations; ++i) together.submit(i, prompts()[static_cast<std::size_t>(i)]);
  for (int i = 0; i < conversations; ++i) expect_like_solo_run(i, together.recorder.wait(i));
  EXPECT_EQ(together.engine->stats().preemptions, 0u);
  EXPECT_EQ(together.engine->stats().blocks_used, 0);
}

TEST(TinyModel, PreemptedConversationsGiveTheTokensOfOneAtATime) {
  constexpr int slots = 8, first = 24;
  TinyEngine together(slots);
  for (int i = 0; i < first; ++i) together.submit(i, prompts()[static_cast<std::size_t>(i)], 1);
  for (int i = 0; i < slots; ++i) together.recorder.wait_events(i, 4);
  for (int i = first; i < conversations; ++i) together.submit(i, prompts()[static_cast<std::size_t>(i)], 0);
  for (int i = 0; i < conversations; ++i) expect_like_solo_run(i, together.recorder.wait(i));
  EXPECT_GT(together.engine->stats().preemptions, 0u);
  EXPECT_EQ(together.engine->stats().blocks_used, 0);
}

}  // namespace
}  // namespace sluice::test
