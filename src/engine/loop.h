#pragma once
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cache/cache_plan.h"
#include "cache/kv_pool.h"
#include "cache/state_pool.h"
#include "engine/batch_builder.h"
#include "engine/engine.h"
#include "engine/generation.h"
#include "engine/scheduler.h"
#include "engine/validation.h"

namespace sluice {

/// What an engine owns, and its thread. Everything but the members under "shared" belongs to the thread once it runs.
struct Engine::Loop {
  Loop(std::unique_ptr<Ops> ops, std::unique_ptr<Model> model, const EngineOptions& options);
  ~Loop();

  RequestId submit(Request request);
  void cancel(RequestId request);
  EngineStats stats();
  std::string failure();

  // Constant after construction, in the order of what needs what.
  const std::unique_ptr<Ops> ops;
  const std::unique_ptr<Model> model;
  const std::int64_t max_batched_tokens;
  const CachePlan plan;
  const GenerationLimits generation_limits;
  const RequestLimits request_limits;
  const int max_queued;
  const std::uint64_t seed;
  const bool poison;

 private:
  using GenerationPtr = std::shared_ptr<Generation>;
  struct Delivery {
    GenerationPtr generation;
    TokenEvent event;
  };

  void run();
  bool receive();
  void step();
  void sample(const StepPlan& step, const Tensor& logits);
  void sample_row(const GenerationPtr& generation, std::span<float> logits);
  void finish(const GenerationPtr& generation, TokenEvent event);
  void end_all(FinishReason reason, const std::string& error);
  void give_up(const std::string& error);
  void tidy_caches();
  void check_idle() const;
  void publish();
  void deliver();

  KvPool kv_;
  StatePool state_;
  LayerCaches caches_;
  Scheduler scheduler_;
  BatchBuilder builder_;
  std::unordered_map<RequestId, GenerationPtr> generations_;
  std::vector<float> logits_;  // rows on the host
  SamplerScratch scratch_;
  std::vector<StepResult> results_;
  std::vector<Delivery> outbox_;
  EngineStats counters_;

  // Shared, under the mutex.
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<GenerationPtr> arrivals_;
  std::vector<RequestId> cancels_;
  bool stopping_ = false;
  std::string failure_;    // not empty: the device failed
  EngineStats published_;  // waiting: also what was taken from arrivals_ since
  RequestId next_id_ = 1;

  std::thread thread_;
};

}  // namespace sluice
