#include "engine/loop.h"

#include <algorithm>
#include <exception>
#include <random>
#include <span>

#include "base/error.h"
#include "engine/random.h"

namespace sluice {

namespace {
#ifdef NDEBUG
constexpr bool checking_build = false;
#else
constexpr bool checking_build = true;
#endif
constexpr std::int64_t default_batched_tokens = 512;
constexpr std::int64_t rows_per_copy = 16;  // bounds the host's share of a step's logits

/// Rows of one step: enough for every sequence to decode while a prefill moves on.
std::int64_t rows_of_step(const EngineOptions& options) {
  auto require = [](bool allowed, const char* name, auto found, const char* range) {
    if (!allowed) fail<UsageError>("{} is {}; allowed is {}", name, found, range);
  };
  require(options.max_model_len >= 0, "max_model_len", options.max_model_len, "0 (chosen) or more");
  require(options.max_num_seqs >= 0, "max_num_seqs", options.max_num_seqs, "0 (chosen) or more");
  require(options.max_batched_tokens >= 0, "max_batched_tokens", options.max_batched_tokens, "0 (chosen) or more");
  require(options.max_queued >= 0, "max_queued", options.max_queued, "0 (no limit) or more");
  require(options.memory_utilization > 0.0 && options.memory_utilization <= 1.0, "memory_utilization",
          options.memory_utilization, "above 0, up to 1");
  if (options.max_batched_tokens == 0) {
    return std::max<std::int64_t>(default_batched_tokens, options.max_num_seqs + default_batched_tokens / 2);
  }
  if (options.max_batched_tokens < options.max_num_seqs) {
    fail<UsageError>("max_batched_tokens is {}; allowed is max_num_seqs, {}, or more", options.max_batched_tokens,
                     options.max_num_seqs);
  }
  return options.max_batched_tokens;
}

CachePlan cache_plan(const Ops& ops, const Model& model, const EngineOptions& options, std::int64_t rows) {
  CacheLimits limits;
  limits.max_model_len = options.max_model_len;
  limits.max_num_seqs = options.max_num_seqs;
  limits.most_num_seqs = std::min(limits.most_num_seqs, rows);
  limits.max_context = model.info().max_context;
  const double available = static_cast<double>(ops.free_memory()) * options.memory_utilization;
  return plan_caches(model.cache_needs(), ops.kv_dtype(), static_cast<std::uint64_t>(available), limits);
}

GenerationLimits limits_of(const Model& model, const EngineOptions& options, std::int64_t max_model_len) {
  const std::int64_t columns = model.info().vocabulary;
  if (options.vocabulary_size < 0 || options.vocabulary_size > columns) {
    fail<UsageError>("vocabulary_size is {}; allowed is 0 (all) to the model's {}", options.vocabulary_size, columns);
  }
  const int vocabulary = options.vocabulary_size == 0 ? static_cast<int>(columns) : options.vocabulary_size;
  return {max_model_len, vocabulary, options.stop_tokens};
}

std::uint64_t system_seed() {
  std::random_device device;
  return (std::uint64_t{device()} << 32) | device();
}

CacheMemory memory_of(Ops& ops) {
  return {[&ops](std::size_t bytes) { return ops.new_buffer(bytes); },
          [&ops](const Tensor& tensor, std::uint8_t value) { ops.fill_bytes(tensor, value); }};
}
}  // namespace

Engine::Loop::Loop(std::unique_ptr<Ops> device, std::unique_ptr<Model> loaded, const EngineOptions& options)
    : ops(std::move(device)),
      model(std::move(loaded)),
      max_batched_tokens(rows_of_step(options)),
      plan(cache_plan(*ops, *model, options, max_batched_tokens)),
      generation_limits(limits_of(*model, options, plan.max_model_len)),
      request_limits{plan.max_model_len, model->info().vocabulary, generation_limits.vocabulary},
      max_queued(options.max_queued),
      seed(options.seed != 0 ? options.seed : system_seed()),
      poison(options.poison_freed || checking_build),
      kv_(model->cache_needs(), ops->kv_dtype(), plan.blocks, memory_of(*ops)),
      state_(model->cache_needs(), plan.slots, memory_of(*ops)),
      caches_{kv_.layers(), state_.layers()},
      scheduler_(plan.blocks, plan.slots, max_batched_tokens) {
  publish();
  thread_ = std::thread([this] { run(); });
}

Engine::Loop::~Loop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

RequestId Engine::Loop::submit(Request request) {
  CHECK(request.on_event != nullptr);
  check_request(request, request_limits);
  RequestId id;
  {
    const std::lock_guard lock(mutex_);
    id = next_id_++;
  }
  auto generation = std::make_shared<Generation>(id, std::move(request), generation_limits, random_bits(seed, id));
  {
    const std::lock_guard lock(mutex_);
    if (!failure_.empty()) throw DeviceError(failure_);
    const std::int64_t waiting = published_.waiting + std::ssize(arrivals_);
    if (max_queued > 0 && waiting >= max_queued) {
      fail<QueueFullError>("{} requests wait already, the most that are let wait; come again later", waiting);
    }
    arrivals_.push_back(std::move(generation));
  }
  wake_.notify_one();
  return id;
}

void Engine::Loop::cancel(RequestId request) {
  {
    const std::lock_guard lock(mutex_);
    cancels_.push_back(request);
  }
  wake_.notify_one();
}

EngineStats Engine::Loop::stats() {
  const std::lock_guard lock(mutex_);
  EngineStats stats = published_;
  stats.waiting += static_cast<int>(arrivals_.size());
  return stats;
}

std::string Engine::Loop::failure() {
  const std::lock_guard lock(mutex_);
  return failure_;
}

void Engine::Loop::run() {
  try {
    ops->bind_thread();
    while (receive()) step();
    check_idle();
  } catch (const std::exception& error) {
    give_up(error.what());
  }
}

/// Waits for something to do, and takes in what came. False when the engine is to stop; then all requests have ended.
bool Engine::Loop::receive() {
  if (scheduler_.idle()) check_idle();
  std::deque<GenerationPtr> arrivals;
  std::vector<RequestId> cancels;
  bool stopping;
  {
    std::unique_lock lock(mutex_);
    if (scheduler_.idle()) wake_.wait(lock, [this] { return stopping_ || !arrivals_.empty() || !cancels_.empty(); });
    arrivals.swap(arrivals_);
    published_.waiting += static_cast<int>(arrivals.size());
    cancels.swap(cancels_);
    stopping = stopping_;
  }
  for (const GenerationPtr& generation : arrivals) {
    scheduler_.add(generation->id(), generation->priority(), std::ssize(generation->tokens()), generation->longest(),
                   generation->reported_rows());
    generations_.emplace(generation->id(), generation);
  }
  for (const RequestId id : cancels) {
    const auto found = generations_.find(id);
    if (found == generations_.end()) continue;
    const GenerationPtr generation = found->second;
    scheduler_.cancel(id);
    finish(generation, generation->end(FinishReason::cancelled));
  }
  if (stopping) {
    scheduler_.clear();
    end_all(FinishReason::cancelled, {});
  }
  tidy_caches();
  publish();
  deliver();
  return !stopping;
}

void Engine::Loop::step() {
  if (scheduler_.idle()) return;
  const StepPlan step = scheduler_.plan();
  tidy_caches();
  publish();
  std::vector<BatchSequence> sequences;
  const auto now = Generation::Clock::now();
  for (const StepItem& item : step.items) {
    Generation& generation = *generations_.at(item.sequence);
    if (item.first == 0) generation.start(now);
    sequences.push_back(
        {generation.tokens().subspan(static_cast<std::size_t>(item.first), static_cast<std::size_t>(item.count)),
         item.first, item.cache->blocks(), item.cache->slot(), item.scored_rows});
  }
  {
    const Scope scope(*ops);
    const BatchView batch = builder_.build(sequences, *ops);
    ForwardResult forward;
    ops->step(step.rows(), [&] { forward = model->forward(*ops, batch, caches_); });
    sample(step, forward.logits);
  }
  ++counters_.steps;
  counters_.iteration_tokens.add(static_cast<std::uint64_t>(step.rows()));
  scheduler_.apply(results_);
  tidy_caches();
  publish();
  deliver();
}

/// The next token of each sequence that has one now, and what other scored rows tell about prompts.
void Engine::Loop::sample(const StepPlan& step, const Tensor& logits) {
  results_.clear();
  const std::int64_t count = step.scored_rows(), columns = model->info().vocabulary;
  if (count == 0) return;
  CHECK(logits.shape() == Shape({count, columns}) && logits.dtype() == DType::f32, "{} logits {} of {} rows",
        name_of(logits.dtype()), logits.shape().to_string(), count);
  logits_.resize(static_cast<std::size_t>(std::min(count, rows_per_copy) * columns));
  std::int64_t row = 0;
  for (const StepItem& item : step.items) {
    const std::int64_t end = item.first + item.count;
    for (std::int64_t token = end - item.scored_rows; token < end; ++token, ++row) {
      if (row % rows_per_copy == 0) {
        ops->to_host(logits_.data(), logits.slice(0, row, std::min(rows_per_copy, count - row)));
      }
      const auto begin = static_cast<std::size_t>(row % rows_per_copy * columns);
      const std::span<float> values = std::span(logits_).subspan(begin, static_cast<std::size_t>(columns));
      const GenerationPtr generation = generations_.at(item.sequence);
      if (item.score && token == end - 1) {
        sample_row(generation, values);
      } else {
        generation->report(token, values, scratch_);
      }
    }
  }
}

void Engine::Loop::sample_row(const GenerationPtr& generation, std::span<float> logits) {
  TokenEvent event = generation->advance(logits, scratch_);
  const bool finished = event.finish_reason != FinishReason::none;
  results_.push_back({generation->id(), finished});
  if (event.token.has_value()) {
    ++counters_.generated_tokens;
    if (event.output_tokens == 1) counters_.prompt_tokens += static_cast<std::uint64_t>(event.prompt_tokens);
  }
  if (finished) {
    finish(generation, std::move(event));
  } else {
    outbox_.push_back({generation, std::move(event)});
  }
}

/// Forgets a request whose last event this is; the scheduler learns of it by other means.
void Engine::Loop::finish(const GenerationPtr& generation, TokenEvent event) {
  switch (event.finish_reason) {
    case FinishReason::cancelled: ++counters_.cancelled; break;
    case FinishReason::error: ++counters_.failed; break;
    default: ++counters_.finished; break;
  }
  generations_.erase(generation->id());
  outbox_.push_back({generation, std::move(event)});
}

void Engine::Loop::end_all(FinishReason reason, const std::string& error) {
  std::vector<GenerationPtr> all;
  for (const auto& [id, generation] : generations_) all.push_back(generation);
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a->id() < b->id(); });
  for (const GenerationPtr& generation : all) finish(generation, generation->end(reason, error));
}

/// The device failed: every request ends with its message, and no more are taken.
void Engine::Loop::give_up(const std::string& error) {
  {
    const std::lock_guard lock(mutex_);
    failure_ = "the engine stopped: " + error;
    for (const GenerationPtr& generation : arrivals_) generations_.emplace(generation->id(), generation);
    arrivals_.clear();
  }
  scheduler_.clear();
  end_all(FinishReason::error, failure_);
  publish();
  deliver();
}

void Engine::Loop::tidy_caches() {
  const CacheChanges changes = scheduler_.take_changes();
  if (poison) {
    for (const std::int32_t block : changes.released_blocks) kv_.poison(block);
    for (const std::int32_t slot : changes.released_slots) state_.poison(slot);
  }
  for (const std::int32_t slot : changes.taken_slots) {
    if (scheduler_.slots().is_taken(slot)) state_.zero(slot);
  }
}

void Engine::Loop::check_idle() const {
  CHECK(generations_.empty() && scheduler_.blocks().used() == 0 && scheduler_.slots().used() == 0,
        "{} requests, {} blocks and {} slots left over", generations_.size(), scheduler_.blocks().used(),
        scheduler_.slots().used());
}

void Engine::Loop::publish() {
  counters_.running = static_cast<int>(scheduler_.running());
  counters_.waiting = static_cast<int>(scheduler_.waiting());
  counters_.blocks_used = scheduler_.blocks().used();
  counters_.blocks_total = scheduler_.blocks().total();
  counters_.block_size = kv_block_size;
  counters_.state_slots_used = scheduler_.slots().used();
  counters_.state_slots_total = scheduler_.slots().total();
  counters_.preemptions = scheduler_.preemptions();
  const std::lock_guard lock(mutex_);
  published_ = counters_;
}

void Engine::Loop::deliver() {
  for (const Delivery& delivery : std::exchange(outbox_, {})) {
    const RequestId id = delivery.generation->id();
    if (delivery.generation->deliver(delivery.event) || generations_.erase(id) == 0) continue;
    scheduler_.cancel(id);
    ++counters_.failed;
  }
}

}  // namespace sluice
