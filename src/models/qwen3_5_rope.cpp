#include "models/qwen3_5_rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace sluice {

namespace {

double yarn_mscale(double scale, double mscale) { return scale <= 1.0 ? 1.0 : 0.1 * mscale * std::log(scale) + 1.0; }

float yarn_attention_factor(const Qwen3_5RopeConfig& config) {
  if (config.attention_factor) return static_cast<float>(*config.attention_factor);
  if (config.mscale.value_or(0.0) != 0.0 && config.mscale_all_dim.value_or(0.0) != 0.0) {
    return static_cast<float>(yarn_mscale(config.factor, *config.mscale) /
                              yarn_mscale(config.factor, *config.mscale_all_dim));
  }
  return static_cast<float>(yarn_mscale(config.factor, 1.0));
}

/// The (fractional) frequency index that turns `rotations` times within the original context.
double correction_dimension(double rotations, double dimensions, const Qwen3_5RopeConfig& config) {
  return dimensions * std::log(config.original_max_position_embeddings / (rotations * 2.0 * std::numbers::pi)) /
         (2.0 * std::log(config.theta));
}

void stretch_by_yarn(const Qwen3_5RopeConfig& config, std::vector<float>& inverse_frequencies) {
  const auto dimensions = static_cast<double>(2 * inverse_frequencies.size());
  double low = correction_dimension(config.beta_fast, dimensions, config);
  double high = correction_dimension(config.beta_slow, dimensions, config);
  if (config.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, dimensions - 1.0);
  if (low == high) high += 0.001;
  for (std::size_t i = 0; i < inverse_frequencies.size(); ++i) {
    const double ramp = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    const double kept = 1.0 - ramp;
    const double original = inverse_frequencies[i];
    inverse_frequencies[i] = static_cast<float>(original / config.factor * (1.0 - kept) + original * kept);
  }
}

std::int32_t axis_of(std::int64_t i, const Qwen3_5RopeConfig& config) {
  const auto& sections = config.mrope_section;
  if (sections.empty()) return 0;
  if (config.mrope_interleaved) {
    const std::int64_t axis = i % 3;
    return axis != 0 && i < 3 * sections[static_cast<std::size_t>(axis)] ? static_cast<std::int32_t>(axis) : 0;
  }
  if (i < sections[0]) return 0;
  return i < sections[0] + sections[1] ? 1 : 2;
}

}  // namespace

RopeTable make_rope_table(const Qwen3_5RopeConfig& config, std::int64_t frequencies) {
  RopeTable table;
  for (std::int64_t i = 0; i < frequencies; ++i) {
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(2 * frequencies);
    table.inverse_frequencies.push_back(1.0f / std::pow(static_cast<float>(config.theta), exponent));
    table.axes.push_back(axis_of(i, config));
  }
  if (config.yarn) {
    stretch_by_yarn(config, table.inverse_frequencies);
    table.scale = yarn_attention_factor(config);
  }
  return table;
}

}  // namespace sluice
