#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/request.h"
#include "models/model.h"
#include "ops/ops.h"

namespace sluice {

struct EngineOptions {
  std::int64_t max_model_len = 0;       // tokens of one sequence; 0: the model's context, or what fits in memory
  int max_num_seqs = 0;                 // sequences running at once; 0: as many as fit, at most 256
  std::int64_t max_batched_tokens = 0;  // rows of one step; 0: 512
  double memory_utilization = 0.9;      // share of free memory (after the weights) that caches may take
  int max_queued = 0;                   // requests waiting to start, beyond which submit() refuses; 0: no limit
  std::uint64_t seed = 0;               // of requests that bring no seed; 0: from the system
  int vocabulary_size = 0;              // ids from here on are never sampled; 0: all of the model's columns
  bool poison_freed = false;            // fill freed caches with NaN; builds without NDEBUG always do
  std::vector<TokenId> stop_tokens;     // union of generation_config, config and tokenizer
};

/// How many steps had up to so many rows.
struct StepSizes {
  static constexpr std::array<std::uint64_t, 13> bounds{1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384};
  std::array<std::uint64_t, bounds.size() + 1> up_to{};  // steps with at most bounds[i] rows; the last: all of them
  std::uint64_t rows = 0;                                // of all steps together
  void add(std::uint64_t rows_of_step);
};

/// A snapshot of counters and gauges.
struct EngineStats {
  int running = 0, waiting = 0;
  std::int64_t blocks_used = 0, blocks_total = 0, block_size = 0;  // block_size: tokens
  std::int64_t state_slots_used = 0, state_slots_total = 0;
  std::uint64_t prompt_tokens = 0, generated_tokens = 0, steps = 0, preemptions = 0;
  std::uint64_t finished = 0, cancelled = 0, failed = 0;
  StepSizes iteration_tokens;
};

/// The loop: requests in from any thread, token events out on the engine's own thread. Continuous batching, chunked
/// prefill mixed with decode, preemption with recompute.
class Engine {
 public:
  /// Takes what it needs of free memory for the caches; throws DeviceError when not even one sequence fits, UsageError
  /// for an option out of range.
  Engine(std::unique_ptr<Ops> ops, std::unique_ptr<Model> model, const EngineOptions& options);
  /// Cancels what still runs and joins the thread. Not from a callback.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  /// Throws RequestError for an empty or too long prompt, ids out of range, or parameters out of range; QueueFullError
  /// when max_queued requests wait; DeviceError once the device failed. Events may come before it returns. This and
  /// cancel() may be called from callbacks. A request whose callback throws ends without further events.
  RequestId submit(Request request);
  /// The request ends with FinishReason::cancelled, unless it already ended. Unknown ids are ignored.
  void cancel(RequestId request);

  EngineStats stats() const;
  /// The device failed: all requests have ended, and no more are taken.
  bool failed() const;
  /// Why; empty unless failed().
  std::string failure() const;
  const ModelInfo& model_info() const;
  std::int64_t max_model_len() const;
  /// The table printed at start: device, memory plan, kernels.
  std::vector<std::string> describe() const;

 private:
  struct Loop;
  std::unique_ptr<Loop> loop_;
};

}  // namespace sluice
