#include <algorithm>
#include <string_view>

#include "models/qwen3_5_config.h"

namespace sluice {

namespace {

// Written by transformers into every config, without meaning for inference.
constexpr std::string_view bookkeeping[] = {
    "_name_or_path", "architectures", "attention_dropout", "chunk_size_feed_forward",
    "dtype",         "id2label",      "initializer_range", "is_encoder_decoder",
    "label2id",      "model_type",    "output_attentions", "output_hidden_states",
    "problem_type",  "return_dict",   "torch_dtype",       "transformers_version",
    "use_cache",     "bos_token_id",  "eos_token_id",      "pad_token_id"};

constexpr std::string_view top_keys[] = {"text_config",         "vision_config",         "image_token_id",
                                         "video_token_id",      "vision_start_token_id", "vision_end_token_id",
                                         "tie_word_embeddings", "language_model_only",   "quantization_config"};

constexpr std::string_view text_keys[] = {"vocab_size",
                                          "hidden_size",
                                          "num_hidden_layers",
                                          "intermediate_size",
                                          "num_attention_heads",
                                          "num_key_value_heads",
                                          "head_dim",
                                          "attn_output_gate",
                                          "output_gate_type",
                                          "full_attention_interval",
                                          "layer_types",
                                          "linear_conv_kernel_dim",
                                          "linear_key_head_dim",
                                          "linear_value_head_dim",
                                          "linear_num_key_heads",
                                          "linear_num_value_heads",
                                          "mamba_ssm_dtype",
                                          "rms_norm_eps",
                                          "hidden_act",
                                          "max_position_embeddings",
                                          "attention_bias",
                                          "rope_parameters",
                                          "rope_scaling",
                                          "rope_theta",
                                          "partial_rotary_factor",
                                          "mtp_num_hidden_layers",
                                          "mtp_use_dedicated_embeddings",
                                          "mlp_only_layers",
                                          "num_experts",
                                          "num_experts_per_tok",
                                          "moe_intermediate_size",
                                          "shared_expert_intermediate_size",
                                          "router_aux_loss_coef",
                                          "output_router_logits",
                                          "norm_topk_prob",
                                          "decoder_sparse_step",
                                          "tie_word_embeddings"};

constexpr std::string_view rope_keys[] = {"rope_type",     "type",
                                          "rope_theta",    "partial_rotary_factor",
                                          "mrope_section", "mrope_interleaved",
                                          "factor",        "beta_fast",
                                          "beta_slow",     "attention_factor",
                                          "mscale",        "mscale_all_dim",
                                          "truncate",      "original_max_position_embeddings"};

constexpr std::string_view vision_keys[] = {"depth",
                                            "hidden_size",
                                            "intermediate_size",
                                            "num_heads",
                                            "out_hidden_size",
                                            "patch_size",
                                            "temporal_patch_size",
                                            "spatial_merge_size",
                                            "in_channels",
                                            "num_position_embeddings",
                                            "hidden_act",
                                            "deepstack_visual_indexes",
                                            "rope_parameters"};

template <std::size_t N>
bool listed(const std::string_view (&keys)[N], const std::string& key) {
  return std::find(std::begin(keys), std::end(keys), key) != std::end(keys);
}

template <class Known>
void collect(const Json& object, const std::string& path, std::vector<std::string>& unknown, const Known& known) {
  if (!object.is_object()) return;
  for (const auto& [key, value] : object.items()) {
    if (!listed(bookkeeping, key) && !known(key)) unknown.push_back(path + key);
  }
}

void collect_text(const Json& text, const std::string& path, bool flat, std::vector<std::string>& unknown) {
  collect(text, path, unknown,
          [flat](const std::string& key) { return listed(text_keys, key) || (flat && listed(top_keys, key)); });
  for (const char* key : {"rope_parameters", "rope_scaling"}) {
    if (!text.contains(key)) continue;
    collect(text[key], path + key + ".", unknown, [](const std::string& name) { return listed(rope_keys, name); });
  }
}

}  // namespace

std::vector<std::string> unknown_qwen3_5_keys(const Json& config) {
  std::vector<std::string> unknown;
  if (!config.is_object()) return unknown;
  if (config.contains("text_config")) {
    collect(config, "", unknown, [](const std::string& key) { return listed(top_keys, key); });
    collect_text(config["text_config"], "text_config.", false, unknown);
  } else {
    collect_text(config, "", true, unknown);
  }
  if (config.contains("vision_config")) {
    collect(config["vision_config"], "vision_config.", unknown,
            [](const std::string& key) { return listed(vision_keys, key); });
  }
  return unknown;
}

}  // namespace sluice
