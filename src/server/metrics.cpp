#include "server/metrics.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include <fmt/format.h>

namespace sluice {

namespace {

/// Appends families of samples, each with its type and a sentence.
class Exposition {
 public:
  Exposition(std::string& out, std::string_view model_name) : out_(out), labels_("model_name=\"") {
    for (const char c : model_name) {
      if (c == '"' || c == '\\') labels_ += '\\';
      labels_ += c == '\n' ? ' ' : c;
    }
    labels_ += '"';
  }
  const std::string& labels() const { return labels_; }

  void family(std::string_view name, std::string_view type, std::string_view sentence) {
    fmt::format_to(std::back_inserter(out_), "# HELP {} {}\n# TYPE {} {}\n", name, sentence, name, type);
  }
  template <class Number>
  void sample(std::string_view name, Number value, std::string_view more_labels = "") {
    fmt::format_to(std::back_inserter(out_), "{}{{{}{}}} {}\n", name, labels_, more_labels, value);
  }
  template <class Number>
  void gauge(std::string_view name, std::string_view sentence, Number value) {
    family(name, "gauge", sentence);
    sample(name, value);
  }
  void counter(std::string_view name, std::string_view sentence, std::uint64_t value) {
    family(name, "counter", sentence);
    sample(name, value);
  }
  void histogram(std::string_view name, std::string_view sentence, const Histogram& histogram) {
    family(name, "histogram", sentence);
    histogram.write(out_, name, labels_);
  }

 private:
  std::string& out_;
  std::string labels_;
};

double share(std::int64_t used, std::int64_t total) {
  return total > 0 ? static_cast<double>(used) / static_cast<double>(total) : 0.0;
}

void write_gauges(Exposition& page, const EngineStats& stats) {
  page.gauge("vllm:num_requests_running", "Sequences in the running batch.", stats.running);
  page.gauge("vllm:num_requests_waiting", "Sequences waiting to be run.", stats.waiting);
  const double usage = share(stats.blocks_used, stats.blocks_total);
  page.gauge("vllm:kv_cache_usage_perc", "Share of KV blocks in use (1 is 100 percent).", usage);
  page.gauge("vllm:gpu_cache_usage_perc", "The same, under its older name.", usage);
  page.family("vllm:cache_config_info", "gauge", "Sizes of the cache.");
  page.sample("vllm:cache_config_info", 1,
              fmt::format(",block_size=\"{}\",num_gpu_blocks=\"{}\"", stats.block_size, stats.blocks_total));
  page.gauge("sluice:state_slots_used", "State slots of delta-net layers in use.", stats.state_slots_used);
  page.gauge("sluice:state_slots", "State slots of delta-net layers.", stats.state_slots_total);
  page.gauge("sluice:kv_blocks_used", "KV blocks in use.", stats.blocks_used);
}

void write_counters(Exposition& page, const EngineStats& stats) {
  page.counter("vllm:prompt_tokens_total", "Prompt tokens processed.", stats.prompt_tokens);
  page.counter("vllm:generation_tokens_total", "Tokens generated.", stats.generated_tokens);
  page.counter("vllm:num_preemptions_total", "Sequences taken out to be recomputed.", stats.preemptions);
  for (const std::string_view name : {"vllm:prefix_cache_queries_total", "vllm:gpu_prefix_cache_queries_total"})
    page.counter(name, "Tokens looked up in the prefix cache (this build has none).", 0);
  for (const std::string_view name : {"vllm:prefix_cache_hits_total", "vllm:gpu_prefix_cache_hits_total"})
    page.counter(name, "Tokens found in the prefix cache (this build has none).", 0);
  page.counter("vllm:spec_decode_num_drafts_total", "Drafts (this build does not speculate).", 0);
  page.counter("vllm:spec_decode_num_draft_tokens_total", "Tokens drafted (this build does not speculate).", 0);
  page.counter("vllm:spec_decode_num_accepted_tokens_total", "Drafted tokens accepted (this build does not speculate).",
               0);
  page.counter("sluice:state_checkpoints_total", "State checkpoints taken (this build takes none).", 0);
  page.counter("sluice:state_rollbacks_total", "States rolled back (this build rolls none back).", 0);
  page.counter("sluice:steps_total", "Steps of the engine.", stats.steps);
}

void write_step_sizes(Exposition& page, const StepSizes& sizes) {
  const std::string name = "vllm:iteration_tokens_total";
  page.family(name, "histogram", "Rows of a step of the engine.");
  for (std::size_t i = 0; i < sizes.bounds.size(); ++i)
    page.sample(name + "_bucket", sizes.up_to[i], fmt::format(",le=\"{}\"", sizes.bounds[i]));
  page.sample(name + "_bucket", sizes.up_to.back(), ",le=\"+Inf\"");
  page.sample(name + "_sum", sizes.rows);
  page.sample(name + "_count", sizes.up_to.back());
}

}  // namespace

void Histogram::observe(double value) {
  const auto bucket = std::lower_bound(bounds_.begin(), bounds_.end(), value) - bounds_.begin();
  ++counts_[static_cast<std::size_t>(bucket)];
  sum_ += value;
}

void Histogram::write(std::string& out, std::string_view name, std::string_view labels) const {
  std::uint64_t below = 0;
  for (std::size_t i = 0; i < counts_.size(); ++i) {
    below += counts_[i];
    const std::string bound = i < bounds_.size() ? fmt::format("{}", bounds_[i]) : "+Inf";
    fmt::format_to(std::back_inserter(out), "{}_bucket{{{},le=\"{}\"}} {}\n", name, labels, bound, below);
  }
  fmt::format_to(std::back_inserter(out), "{}_sum{{{}}} {}\n{}_count{{{}}} {}\n", name, labels, sum_, name, labels,
                 below);
}

std::string_view name_of(EndKind kind) {
  constexpr std::array<std::string_view, end_kinds> names = {"stop", "length", "tool_calls", "abort", "error"};
  return names[static_cast<std::size_t>(kind)];
}

std::vector<double> Metrics::seconds_buckets() {
  return {0.01, 0.05, 0.1,  0.3,  0.5,  0.8,  1.0,   1.5,   2.0,   2.5,    5.0,
          10.0, 15.0, 20.0, 30.0, 40.0, 60.0, 120.0, 240.0, 480.0, 1920.0, 7680.0};
}

std::vector<double> Metrics::token_buckets() {
  return {1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000, 50000, 100000, 200000};
}

void Metrics::finished(EndKind kind, const Timings& timings) {
  ++ends_[static_cast<std::size_t>(kind)];
  if (kind == EndKind::aborted || kind == EndKind::error) return;
  e2e_latency_.observe(timings.total_ms / 1e3);
  queue_time_.observe(timings.queued_ms / 1e3);
  prefill_time_.observe((timings.first_token_ms - timings.queued_ms) / 1e3);
  decode_time_.observe((timings.total_ms - timings.first_token_ms) / 1e3);
  prompt_tokens_.observe(static_cast<double>(timings.prompt_tokens));
  generation_tokens_.observe(static_cast<double>(timings.output_tokens));
}

std::string Metrics::text(const Engine* engine, const HttpStats& http, std::string_view model_name) const {
  std::string out;
  Exposition page(out, model_name);
  const EngineStats stats = engine != nullptr ? engine->stats() : EngineStats{};
  write_gauges(page, stats);
  write_counters(page, stats);
  page.family("vllm:request_success_total", "counter", "Requests that ended, by reason.");
  for (std::size_t i = 0; i < end_kinds; ++i) {
    page.sample("vllm:request_success_total", ends_[i],
                fmt::format(",finished_reason=\"{}\"", name_of(static_cast<EndKind>(i))));
  }
  page.histogram("vllm:time_to_first_token_seconds", "From arrival to the first token.", time_to_first_token_);
  page.histogram("vllm:inter_token_latency_seconds", "Between two tokens of a sequence.", inter_token_latency_);
  page.histogram("vllm:e2e_request_latency_seconds", "From arrival to the last token.", e2e_latency_);
  page.histogram("vllm:request_queue_time_seconds", "Spent waiting.", queue_time_);
  page.histogram("vllm:request_prefill_time_seconds", "From the first step to the first token.", prefill_time_);
  page.histogram("vllm:request_decode_time_seconds", "From the first token to the last.", decode_time_);
  page.histogram("vllm:request_prompt_tokens", "Prompt tokens of a request.", prompt_tokens_);
  page.histogram("vllm:request_generation_tokens", "Generated tokens of a request.", generation_tokens_);
  write_step_sizes(page, stats.iteration_tokens);
  page.gauge("sluice:http_connections", "Open connections.", http.connections);
  page.gauge("sluice:http_requests_in_progress", "Requests being answered.", http.exchanges);
  page.counter("sluice:http_requests_total", "Requests read.", http.requests);
  page.counter("sluice:http_connections_total", "Connections accepted.", http.accepted);
  page.counter("sluice:http_connections_refused_total", "Connections refused, as there were too many.", http.refused);
  return out;
}

}  // namespace sluice
