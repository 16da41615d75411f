#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "engine/engine.h"
#include "server/http.h"
#include "server/reply.h"

namespace sluice {

/// A histogram of Prometheus.
class Histogram {
 public:
  /// bounds: upper bounds of the buckets, ascending, without the last one (infinity).
  explicit Histogram(std::vector<double> bounds) : bounds_(std::move(bounds)), counts_(bounds_.size() + 1) {}
  void observe(double value);
  /// Appends its samples.
  void write(std::string& out, std::string_view name, std::string_view labels) const;

 private:
  std::vector<double> bounds_;
  std::vector<std::uint64_t> counts_;  // not cumulative
  double sum_ = 0.0;
};

/// How a request's choice ended, for the counters.
enum class EndKind : std::uint8_t { stop, length, tool_calls, aborted, error };
constexpr std::size_t end_kinds = 5;
std::string_view name_of(EndKind kind);

/// What /metrics tells beside the engine's own counters. Belongs to the event thread.
class Metrics {
 public:
  void token_after(double seconds) { inter_token_latency_.observe(seconds); }
  void first_token_after(double seconds) { time_to_first_token_.observe(seconds); }
  /// One choice of a request has ended.
  void finished(EndKind kind, const Timings& timings);

  /// The text format of Prometheus 0.0.4, under the names that gateways read. engine: null while it is not there.
  std::string text(const Engine* engine, const HttpStats& http, std::string_view model_name) const;

 private:
  static std::vector<double> seconds_buckets();
  static std::vector<double> token_buckets();

  Histogram time_to_first_token_{{0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1,  0.25,  0.5,   0.75,
                                  1.0,   2.5,   5.0,  7.5,  10.0, 20.0, 40.0, 80.0, 160.0, 640.0, 2560.0}};
  Histogram inter_token_latency_{{0.001, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1,  0.15, 0.2,  0.3, 0.4,
                                  0.5,   0.75,  1.0,  2.5,   5.0,  7.5,   10.0, 20.0, 40.0, 80.0}};
  Histogram e2e_latency_{seconds_buckets()}, queue_time_{seconds_buckets()}, prefill_time_{seconds_buckets()},
      decode_time_{seconds_buckets()};
  Histogram prompt_tokens_{token_buckets()}, generation_tokens_{token_buckets()};
  std::array<std::uint64_t, end_kinds> ends_{};
};

}  // namespace sluice
