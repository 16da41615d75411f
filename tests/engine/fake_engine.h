#pragma once
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "cache/cache_plan.h"
#include "cache/kv_pool.h"
#include "engine/candidates.h"
#include "engine/engine.h"
#include "engine/sampler.h"
#include "fake_model.h"
#include "fake_ops.h"
#include "recorder.h"

namespace sluice {

/// An engine over the fake machine and model, with exactly the caches asked for.
struct FakeEngine {
  struct Sizes {
    std::int64_t blocks = 8;
    int slots = 4;
    std::int64_t max_model_len = 256;
    std::int64_t max_batched_tokens = 128;
  };
  explicit FakeEngine(const Sizes& sizes) : FakeEngine(sizes, EngineOptions{}) {}
  FakeEngine(const Sizes& sizes, EngineOptions options) {
    const CachePlan unit = plan_caches(FakeModel::needs(), DType::f32, 1u << 20, {.max_context = 64});
    plan.free_memory = static_cast<std::uint64_t>(sizes.blocks) * unit.bytes_per_block +
                       static_cast<std::uint64_t>(sizes.slots) * unit.bytes_per_slot;
    options.max_model_len = sizes.max_model_len;
    options.max_num_seqs = sizes.slots;
    options.max_batched_tokens = sizes.max_batched_tokens;
    options.memory_utilization = 1.0;
    options.poison_freed = true;
    options.vocabulary_size = fake_poison_token;
    if (options.seed == 0) options.seed = 1;
    auto fake = std::make_unique<FakeModel>();
    model = fake.get();
    engine = std::make_unique<Engine>(std::make_unique<FakeOps>(plan), std::move(fake), options);
  }
  Engine* operator->() const { return engine.get(); }

  FakeOps::Plan plan;
  FakeModel* model = nullptr;
  Recorder recorder;
  std::unique_ptr<Engine> engine;
};

inline std::vector<TokenId> random_prompt(std::mt19937& random, std::size_t length) {
  std::vector<TokenId> prompt(length);
  for (TokenId& token : prompt) token = static_cast<TokenId>(random() % 90);
  return prompt;
}

/// What the request must give: the sampler over the fake model's logits, without engine or caches.
inline std::vector<TokenId> expected_tokens(const std::vector<TokenId>& prompt, const SamplingParams& params,
                                            std::size_t count) {
  Sampler sampler(params, prompt, {}, fake_poison_token, params.seed.value_or(0));
  SamplerScratch scratch;
  std::vector<TokenId> history = prompt;
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<float> logits = fake_logits(history);
    history.push_back(sampler.sample(logits, nullptr, scratch).token);
  }
  return {history.begin() + static_cast<std::ptrdiff_t>(prompt.size()), history.end()};
}

}  // namespace sluice
