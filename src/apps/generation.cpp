#include "apps/generation.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>

#include "apps/interrupt.h"
#include "base/error.h"
#include "text/stop_strings.h"

namespace sluice {

namespace {

/// A number of generation_config.json within its range, if it is there.
std::optional<double> config_number(const Json& config, const char* key, double low, double high) {
  if (!config.is_object()) return std::nullopt;
  const auto found = config.find(key);
  if (found == config.end() || found->is_null()) return std::nullopt;
  const bool fits = found->is_number() && found->get<double>() >= low && found->get<double>() <= high;
  if (!fits)
    fail<LoadError>("generation_config.json: {} is {}, expected a number from {} to {}", key, found->dump(), low, high);
  return found->get<double>();
}

template <class T>
double chosen(const Option<T>& option, const Json& config, const char* key) {
  if (option.given()) return static_cast<double>(*option);
  return config_number(config, key, option.low, option.high).value_or(static_cast<double>(*option));
}

/// Events on their way from the engine's thread to the caller's.
class EventQueue {
 public:
  void push(const TokenEvent& event) {
    {
      const std::lock_guard lock(mutex_);
      events_.push_back(event);
    }
    arrived_.notify_one();
  }
  /// Nothing when none came for a moment.
  std::optional<TokenEvent> pop() {
    std::unique_lock lock(mutex_);
    if (!arrived_.wait_for(lock, std::chrono::milliseconds(20), [this] { return !events_.empty(); }))
      return std::nullopt;
    TokenEvent event = std::move(events_.front());
    events_.pop_front();
    return event;
  }

 private:
  std::mutex mutex_;
  std::condition_variable arrived_;
  std::deque<TokenEvent> events_;
};

/// Cancels the request when its reader gives up on it.
class RunningRequest {
 public:
  RunningRequest(Engine& engine, Request request) : engine_(engine), id_(engine.submit(std::move(request))) {}
  ~RunningRequest() { cancel(); }
  RunningRequest(const RunningRequest&) = delete;
  RunningRequest& operator=(const RunningRequest&) = delete;
  void cancel() { engine_.cancel(id_); }

 private:
  Engine& engine_;
  RequestId id_;
};

}  // namespace

SamplingParams sampling_params(const SamplingFlags& flags, const EngineFlags& engine, const Json& generation_config) {
  const Json& config = generation_config;
  SamplingParams params;
  const bool greedy = config.is_object() && config.contains("do_sample") && config["do_sample"] == false;
  params.temperature =
      static_cast<float>(greedy && !flags.temperature.given() ? 0.0 : chosen(flags.temperature, config, "temperature"));
  params.top_k = static_cast<int>(chosen(flags.top_k, config, "top_k"));
  params.top_p = static_cast<float>(chosen(flags.top_p, config, "top_p"));
  params.min_p = static_cast<float>(chosen(flags.min_p, config, "min_p"));
  params.repetition_penalty = static_cast<float>(chosen(flags.repetition_penalty, config, "repetition_penalty"));
  params.presence_penalty = static_cast<float>(*flags.presence_penalty);
  params.frequency_penalty = static_cast<float>(*flags.frequency_penalty);
  params.max_tokens = static_cast<int>(*flags.max_tokens);
  params.ignore_eos = *flags.ignore_eos;
  if (engine.seed.given()) params.seed = static_cast<std::uint64_t>(*engine.seed);
  return params;
}

Json template_variables(const std::string& thinking) {
  Json variables = Json::object();
  if (!thinking.empty()) variables["enable_thinking"] = thinking == "on";
  return variables;
}

double Generated::prefill_tokens_per_second() const {
  const double seconds = std::chrono::duration<double>(timings.first_token - timings.queued).count();
  return seconds > 0.0 ? prompt_tokens / seconds : 0.0;
}

double Generated::decode_tokens_per_second() const {
  const double seconds = std::chrono::duration<double>(timings.total - timings.first_token).count();
  return seconds > 0.0 && tokens.size() > 1 ? static_cast<double>(tokens.size() - 1) / seconds : 0.0;
}

Generated generate_reply(const Session& session, std::vector<TokenId> prompt, const SamplingParams& sampling,
                         const ReplyReading& reading, const ReplyCallback& on_delta) {
  std::optional<ReplyReader> reader;
  if (session.tokenizer) reader.emplace(session.tokenizer, reading);
  const auto& stops = session.stop_tokens;
  auto queue = std::make_shared<EventQueue>();
  Request request;
  request.prompt = std::move(prompt);
  request.sampling = sampling;
  request.on_event = [queue](const TokenEvent& event) { queue->push(event); };
  if (!reading.stop.empty()) {
    if (!session.tokenizer) fail<RequestError>("--stop: needs text, but the model has no tokenizer.json");
    request.stop = make_stop_strings(session.tokenizer, reading.stop);
  }

  const InterruptGuard interrupt;
  RunningRequest running(*session.engine, std::move(request));
  Generated generated;
  bool cancelled = false;
  while (generated.finish_reason == FinishReason::none) {
    if (interrupt.interrupted() && !cancelled) {
      running.cancel();
      cancelled = true;
    }
    const std::optional<TokenEvent> event = queue->pop();
    if (!event) continue;
    generated.finish_reason = event->finish_reason;
    generated.prompt_tokens = event->prompt_tokens;
    generated.timings = event->timings;
    if (event->finish_reason == FinishReason::error) throw RequestError(event->error);
    if (!event->token || cancelled) continue;
    generated.tokens.push_back(*event->token);
    const bool ends_turn = event->finish_reason == FinishReason::stop && !sampling.ignore_eos &&
                           std::binary_search(stops.begin(), stops.end(), *event->token);
    on_delta(*event->token, reader ? reader->add(*event->token, ends_turn) : ReplyDelta{});
  }
  if (cancelled) generated.finish_reason = FinishReason::cancelled;
  on_delta(std::nullopt, reader ? reader->finish() : ReplyDelta{});
  if (reader) generated.reply = reader->reply();
  return generated;
}

}  // namespace sluice
