#include "server/reply.h"

#include <cmath>

namespace sluice {

Json usage_json(const Usage& usage) {
  return {{"prompt_tokens", usage.prompt_tokens},
          {"completion_tokens", usage.completion_tokens},
          {"total_tokens", usage.prompt_tokens + usage.completion_tokens},
          {"prompt_tokens_details", {{"cached_tokens", usage.cached_tokens}}},
          {"completion_tokens_details", {{"reasoning_tokens", usage.reasoning_tokens}}}};
}

Json timings_json(const Timings& timings) {
  // Clocks tell no more than microseconds.
  auto rounded = [](double value) { return std::round(value * 1e3) / 1e3; };
  auto rate = [&](double tokens, double milliseconds) {
    return milliseconds > 0.0 ? rounded(tokens * 1e3 / milliseconds) : 0.0;
  };
  const double prompt_ms = timings.first_token_ms - timings.queued_ms;
  const double predicted_ms = timings.total_ms - timings.first_token_ms;
  const auto after_first = static_cast<double>(timings.output_tokens > 0 ? timings.output_tokens - 1 : 0);
  return {{"queued_ms", rounded(timings.queued_ms)},
          {"prompt_n", timings.prompt_tokens},
          {"prompt_ms", rounded(prompt_ms)},
          {"prompt_per_second", rate(static_cast<double>(timings.prompt_tokens), prompt_ms)},
          {"predicted_n", timings.output_tokens},
          {"predicted_ms", rounded(predicted_ms)},
          {"predicted_per_second", rate(after_first, predicted_ms)}};
}

}  // namespace sluice
