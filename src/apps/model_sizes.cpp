#include "apps/model_sizes.h"

#include <cmath>

namespace sluice {

CacheNeeds cache_needs_of(const Qwen3_5Config& config, bool has_draft_head) {
  CacheNeeds needs;
  for (const bool full : config.full_attention) ++(full ? needs.kv_layers : needs.state_layers);
  if (has_draft_head) ++needs.kv_layers;
  needs.kv_heads = config.kv_heads;
  needs.head_dim = config.head_dim;
  needs.conv_taps = config.conv_taps;
  needs.conv_channels = config.conv_channels();
  needs.value_heads = config.value_heads;
  needs.key_dim = config.key_dim;
  needs.value_dim = config.value_dim;
  return needs;
}

double ModelSizes::experts_read(double tokens) const {
  return experts == 0 ? 0.0 : experts * (1.0 - std::pow(1.0 - experts_per_token / experts, tokens));
}

ModelSizes model_sizes(const Qwen3_5Config& config) {
  const auto real = [](std::int64_t value) { return static_cast<double>(value); };
  const double hidden = real(config.hidden_size);
  const double query = real(config.heads * config.head_dim), kv = real(config.kv_heads * config.head_dim);
  const double values = real(config.value_heads * config.value_dim);
  ModelSizes sizes;
  sizes.head_parameters = real(config.vocab_size) * hidden;
  sizes.experts = real(config.experts);
  sizes.experts_per_token = real(config.experts_per_token);
  sizes.expert_parameters = 3.0 * hidden * real(config.moe_intermediate_size);
  for (std::size_t i = 0; i < config.full_attention.size(); ++i) {
    if (config.full_attention[i]) {
      sizes.dense_parameters += hidden * (query * (config.attn_output_gate ? 2.0 : 1.0) + 2.0 * kv) + query * hidden;
      sizes.attention_per_position += 4.0 * query;
    } else {
      sizes.dense_parameters +=
          hidden * (real(config.conv_channels()) + values + 2.0 * real(config.value_heads)) + values * hidden;
      // Read of the state, outer product, read for the output: two operations an element each.
      sizes.delta_per_token += 6.0 * real(config.value_heads * config.key_dim * config.value_dim);
      sizes.state_bytes += 4.0 * real(config.value_heads * config.key_dim * config.value_dim +
                                      (config.conv_taps - 1) * config.conv_channels());
    }
    if (config.experts > 0 && !config.dense_mlp[i]) {
      sizes.expert_layers += 1.0;
      sizes.dense_parameters +=
          hidden * (sizes.experts + 1.0) + 3.0 * hidden * real(config.shared_expert_intermediate_size);
    } else {
      sizes.dense_parameters += 3.0 * hidden * real(config.intermediate_size);
    }
  }
  return sizes;
}

}  // namespace sluice
