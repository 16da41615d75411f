#pragma once
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sluice {

using Clock = std::chrono::steady_clock;
inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// What one request of a load test went through. Times are seconds since the start of the run.
struct RequestSample {
  bool succeeded = false;
  std::string error;  // why it did not succeed
  std::int64_t input_tokens = 0, output_tokens = 0;
  double started = 0, first_token = 0, ended = 0;
  std::vector<double> gaps;  // seconds between one event with text and the next

  double time_to_first_token() const { return first_token - started; }
  double latency() const { return ended - started; }
  /// Of the tokens after the first; 0 when there are none.
  double time_per_output_token() const;
};

/// Bounds that a request has to meet, in milliseconds; an absent one is met by all.
struct GoodputBounds {
  std::optional<double> ttft, tpot, e2el;

  bool any() const { return ttft || tpot || e2el; }
  bool met_by(const RequestSample& sample) const;
};

/// "ttft:200,tpot:50" (also e2el; milliseconds). Throws UsageError.
GoodputBounds parse_goodput(std::string_view text);

/// In milliseconds; zero without values.
struct Spread {
  double mean = 0, p50 = 0, p90 = 0, p99 = 0;
};

/// Of values in seconds. Percentiles are interpolated between neighbours, as numpy's are.
Spread spread_of(std::vector<double> seconds);

/// What a run came to. The four spreads are of the requests that succeeded: time to the first token, time per output
/// token after it, time between events, whole time.
struct LoadSummary {
  std::int64_t succeeded = 0, failed = 0, input_tokens = 0, output_tokens = 0;
  double duration = 0;                                                         // seconds
  double request_throughput = 0, output_throughput = 0, total_throughput = 0;  // a second
  std::optional<double> goodput;                                               // requests a second within the bounds
  Spread ttft, tpot, itl, e2el;
};

LoadSummary summarize(const std::vector<RequestSample>& samples, double duration, const GoodputBounds& bounds);

}  // namespace sluice
