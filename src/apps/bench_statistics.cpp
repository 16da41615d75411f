#include "apps/bench_statistics.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

#include "base/error.h"

namespace sluice {

namespace {

/// Of sorted values.
double percentile(const std::vector<double>& sorted, double share) {
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto low = static_cast<std::size_t>(place);
  const std::size_t high = std::min(low + 1, sorted.size() - 1);
  return sorted[low] + (sorted[high] - sorted[low]) * (place - static_cast<double>(low));
}

double parse_bound(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value) || value <= 0) {
    fail<UsageError>("--goodput: \"{}\" is no number of milliseconds", text);
  }
  return value;
}

}  // namespace

double RequestSample::time_per_output_token() const {
  return output_tokens > 1 ? (ended - first_token) / static_cast<double>(output_tokens - 1) : 0.0;
}

bool GoodputBounds::met_by(const RequestSample& sample) const {
  return (!ttft || sample.time_to_first_token() * 1e3 <= *ttft) &&
         (!tpot || sample.time_per_output_token() * 1e3 <= *tpot) && (!e2el || sample.latency() * 1e3 <= *e2el);
}

GoodputBounds parse_goodput(std::string_view text) {
  GoodputBounds bounds;
  while (!text.empty()) {
    const std::string_view part = text.substr(0, text.find(','));
    text.remove_prefix(std::min(part.size() + 1, text.size()));
    const std::size_t colon = part.find(':');
    const std::string_view name = part.substr(0, colon);
    std::optional<double>* bound = name == "ttft"   ? &bounds.ttft
                                   : name == "tpot" ? &bounds.tpot
                                   : name == "e2el" ? &bounds.e2el
                                                    : nullptr;
    if (bound == nullptr || colon == std::string_view::npos) {
      fail<UsageError>("--goodput: \"{}\" is unknown, expected ttft, tpot or e2el with milliseconds, as in ttft:200",
                       part);
    }
    *bound = parse_bound(part.substr(colon + 1));
  }
  return bounds;
}

Spread spread_of(std::vector<double> seconds) {
  if (seconds.empty()) return {};
  std::sort(seconds.begin(), seconds.end());
  const double sum = std::accumulate(seconds.begin(), seconds.end(), 0.0);
  return {sum / static_cast<double>(seconds.size()) * 1e3, percentile(seconds, 0.5) * 1e3,
          percentile(seconds, 0.9) * 1e3, percentile(seconds, 0.99) * 1e3};
}

LoadSummary summarize(const std::vector<RequestSample>& samples, double duration, const GoodputBounds& bounds) {
  LoadSummary summary;
  summary.duration = duration;
  std::vector<double> first, each, gaps, whole;
  std::int64_t good = 0;
  for (const RequestSample& sample : samples) {
    if (!sample.succeeded) {
      ++summary.failed;
      continue;
    }
    ++summary.succeeded;
    summary.input_tokens += sample.input_tokens;
    summary.output_tokens += sample.output_tokens;
    good += bounds.met_by(sample) ? 1 : 0;
    first.push_back(sample.time_to_first_token());
    if (sample.output_tokens > 1) each.push_back(sample.time_per_output_token());
    gaps.insert(gaps.end(), sample.gaps.begin(), sample.gaps.end());
    whole.push_back(sample.latency());
  }
  const auto rate = [duration](std::int64_t count) {
    return duration > 0 ? static_cast<double>(count) / duration : 0.0;
  };
  summary.request_throughput = rate(summary.succeeded);
  summary.output_throughput = rate(summary.output_tokens);
  summary.total_throughput = rate(summary.input_tokens + summary.output_tokens);
  if (bounds.any()) summary.goodput = rate(good);
  summary.ttft = spread_of(std::move(first));
  summary.tpot = spread_of(std::move(each));
  summary.itl = spread_of(std::move(gaps));
  summary.e2el = spread_of(std::move(whole));
  return summary;
}

}  // namespace sluice
