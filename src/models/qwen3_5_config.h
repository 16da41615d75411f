#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "ops/ops.h"

namespace sluice {

/// Rotary embedding, as rope_parameters describes it.
struct Qwen3_5RopeConfig {
  bool yarn = false;
  double theta = 1e7;
  double partial_rotary_factor = 0.25;
  std::vector<std::int64_t> mrope_section;  // frequencies that follow time, height, width; empty: all time
  bool mrope_interleaved = true;
  // YaRN only:
  double factor = 1.0, beta_fast = 32.0, beta_slow = 1.0;
  std::optional<double> attention_factor, mscale, mscale_all_dim;
  double original_max_position_embeddings = 0.0;
  bool truncate = true;
};

struct Qwen3_5VisionConfig {
  std::int64_t depth = 0, hidden_size = 0, intermediate_size = 0, heads = 0, out_hidden_size = 0;
  std::int64_t in_channels = 3, patch_size = 16, temporal_patch_size = 2, spatial_merge_size = 2;
  std::int64_t position_embeddings = 0;
};

/// config.json of the family, checked. Defaults are those of the published checkpoints.
struct Qwen3_5Config {
  std::string architecture;
  std::int64_t vocab_size = 0, hidden_size = 0, layers = 0, intermediate_size = 0;
  std::int64_t heads = 0, kv_heads = 0, head_dim = 256;
  bool attn_output_gate = true, attention_bias = false;
  StorageHints storage;
  std::vector<bool> full_attention;  // one a layer; the others are delta nets
  std::int64_t conv_taps = 4, key_dim = 128, value_dim = 128, key_heads = 0, value_heads = 0;
  GateActivation output_gate = GateActivation::swish;
  float rms_norm_eps = 1e-6f;
  std::int64_t max_position_embeddings = 0;
  Qwen3_5RopeConfig rope;
  bool tie_word_embeddings = false;
  std::int64_t experts = 0, experts_per_token = 0, moe_intermediate_size = 0, shared_expert_intermediate_size = 0;
  std::vector<bool> dense_mlp;             // one a layer: dense even where experts > 0
  std::optional<std::int64_t> mtp_layers;  // absent: decided by the tensors
  bool language_model_only = false;
  std::optional<Qwen3_5VisionConfig> vision;
  std::vector<std::int32_t> stop_tokens;
  std::int64_t image_token = -1, video_token = -1;

  std::int64_t conv_channels() const { return 2 * key_heads * key_dim + value_heads * value_dim; }
  std::int64_t rotary_frequencies() const;
  /// Longest context: max_position_embeddings, stretched by YaRN.
  std::int64_t max_context() const;
};

/// Throws LoadError that names the field for anything missing, of the wrong type, out of range or not supported.
Qwen3_5Config parse_qwen3_5_config(const Json& config);
/// Keys that no page of ours knows, as dotted paths.
std::vector<std::string> unknown_qwen3_5_keys(const Json& config);

}  // namespace sluice
