#include "models/qwen3_5_config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "models/config_fields.h"
#include "weights/formats/hints.h"

namespace sluice {

namespace {

constexpr std::int64_t max_size = std::int64_t{1} << 24;
constexpr std::int64_t max_layers = 1024;
constexpr std::int64_t max_heads = 4096;

constexpr std::array published_architectures{"Qwen3_5ForConditionalGeneration", "Qwen3_5MoeForConditionalGeneration",
                                             "Qwen3_5ForCausalLM", "Qwen3_5MoeForCausalLM"};

std::string read_architecture(const ConfigFields& top) {
  const Json* list = top.find("architectures");
  std::string found;
  if (list != nullptr && list->is_array() && !list->empty() && list->front().is_string()) {
    found = list->front().get<std::string>();
  }
  if (std::find(published_architectures.begin(), published_architectures.end(), found) !=
      published_architectures.end()) {
    return found;
  }
  const auto type = top.text("model_type");
  top.bad("architectures", "is {} (model_type {}); this program runs {}", list == nullptr ? "missing" : list->dump(),
          type.value_or("missing"), fmt::join(published_architectures, ", "));
}

void read_rope(const ConfigFields& text, const Json* parameters, Qwen3_5RopeConfig& rope) {
  if (const auto factor = text.number("partial_rotary_factor", 0.0, 1.0)) rope.partial_rotary_factor = *factor;
  if (const auto theta = text.number("rope_theta", 1.0, 1e12)) rope.theta = *theta;
  if (parameters == nullptr) return;
  const ConfigFields fields(*parameters, text.name_of("rope_parameters"));
  const std::string type = fields.text("rope_type").value_or(fields.text("type").value_or("default"));
  rope.yarn = type == "yarn";
  if (!rope.yarn && type != "default" && type != "mrope") {
    fields.bad("rope_type", "is \"{}\"; supported are default and yarn", type);
  }
  rope.theta = fields.number("rope_theta", 1.0, 1e12).value_or(rope.theta);
  rope.partial_rotary_factor = fields.number("partial_rotary_factor", 0.0, 1.0).value_or(rope.partial_rotary_factor);
  rope.mrope_section = fields.integers("mrope_section", 0, 4096).value_or(std::vector<std::int64_t>{});
  if (!rope.mrope_section.empty() && rope.mrope_section.size() != 3) {
    fields.bad("mrope_section", "has {} parts, expected 3 (time, height, width)", rope.mrope_section.size());
  }
  // Qwen2-VL's sections lie one behind another; this family interleaves unless told otherwise.
  rope.mrope_interleaved = fields.boolean("mrope_interleaved").value_or(true);
  if (!rope.yarn) return;
  const auto factor = fields.number("factor", 1.0, 1e6);
  if (!factor) fields.bad("factor", "is missing (rope_type yarn needs it)");
  rope.factor = *factor;
  rope.beta_fast = fields.number("beta_fast", 0.0, 1e6).value_or(32.0);
  rope.beta_slow = fields.number("beta_slow", 0.0, 1e6).value_or(1.0);
  rope.attention_factor = fields.number("attention_factor", 0.0, 1e6);
  rope.mscale = fields.number("mscale", 0.0, 1e6);
  rope.mscale_all_dim = fields.number("mscale_all_dim", 0.0, 1e6);
  rope.truncate = fields.boolean("truncate").value_or(true);
  rope.original_max_position_embeddings =
      static_cast<double>(fields.integer("original_max_position_embeddings", 1, max_size * 64).value_or(0));
}

std::vector<bool> read_layer_types(const ConfigFields& text, std::int64_t layers) {
  std::vector<bool> full(static_cast<std::size_t>(layers));
  const Json* types = text.find("layer_types");
  if (types == nullptr) {
    const std::int64_t interval = text.integer("full_attention_interval", 1, max_layers).value_or(4);
    for (std::int64_t i = 0; i < layers; ++i) full[static_cast<std::size_t>(i)] = (i + 1) % interval == 0;
    return full;
  }
  if (!types->is_array() || types->size() != full.size()) {
    text.bad("layer_types", "is not a list of {} entries (num_hidden_layers)", layers);
  }
  for (std::size_t i = 0; i < full.size(); ++i) {
    const Json& type = (*types)[i];
    if (type != "full_attention" && type != "linear_attention") {
      text.bad("layer_types", "holds {} for layer {}; supported are full_attention and linear_attention", type.dump(),
               i);
    }
    full[i] = type == "full_attention";
  }
  return full;
}

void read_attention(const ConfigFields& text, Qwen3_5Config& config) {
  config.heads = text.required("num_attention_heads", 1, max_heads);
  config.kv_heads = text.required("num_key_value_heads", 1, max_heads);
  config.head_dim = text.integer("head_dim", 2, 4096).value_or(256);
  config.attention_bias = text.boolean("attention_bias").value_or(false);
  config.attn_output_gate = text.boolean("attn_output_gate").value_or(true);
  if (config.heads % config.kv_heads != 0) {
    text.bad("num_attention_heads", "is {}, not a multiple of num_key_value_heads {}", config.heads, config.kv_heads);
  }
  if (config.head_dim % 16 != 0) text.bad("head_dim", "is {}, expected a multiple of 16", config.head_dim);
}

void read_delta_net(const ConfigFields& text, Qwen3_5Config& config) {
  config.conv_taps = text.integer("linear_conv_kernel_dim", 2, 16).value_or(4);
  config.key_dim = text.integer("linear_key_head_dim", 16, 1024).value_or(128);
  config.value_dim = text.integer("linear_value_head_dim", 16, 1024).value_or(128);
  config.key_heads = text.required("linear_num_key_heads", 1, max_heads);
  config.value_heads = text.required("linear_num_value_heads", 1, max_heads);
  if (config.value_heads % config.key_heads != 0) {
    text.bad("linear_num_value_heads", "is {}, not a multiple of linear_num_key_heads {}", config.value_heads,
             config.key_heads);
  }
  if (config.key_dim % 16 != 0) text.bad("linear_key_head_dim", "is {}, expected a multiple of 16", config.key_dim);
  if (config.value_dim % 16 != 0) {
    text.bad("linear_value_head_dim", "is {}, expected a multiple of 16", config.value_dim);
  }
  const std::string gate = text.text("output_gate_type").value_or("swish");
  if (gate != "swish" && gate != "silu" && gate != "sigmoid") {
    text.bad("output_gate_type", "is \"{}\"; supported are swish and sigmoid", gate);
  }
  config.output_gate = gate == "sigmoid" ? GateActivation::sigmoid : GateActivation::swish;
  const std::string state = text.text("mamba_ssm_dtype").value_or("float32");
  if (state != "float32") text.bad("mamba_ssm_dtype", "is \"{}\"; supported is float32", state);
}

void read_mlp(const ConfigFields& text, Qwen3_5Config& config) {
  const std::string activation = text.text("hidden_act").value_or("silu");
  if (activation != "silu") text.bad("hidden_act", "is \"{}\"; supported is silu", activation);
  config.experts = text.integer("num_experts", 0, 65536).value_or(0);
  config.dense_mlp.assign(static_cast<std::size_t>(config.layers), config.experts == 0);
  for (const std::int64_t layer :
       text.integers("mlp_only_layers", 0, config.layers - 1).value_or(std::vector<std::int64_t>{})) {
    config.dense_mlp[static_cast<std::size_t>(layer)] = true;
  }
  if (std::find(config.dense_mlp.begin(), config.dense_mlp.end(), true) != config.dense_mlp.end()) {
    config.intermediate_size = text.required("intermediate_size", 1, max_size);
  }
  if (config.experts == 0) return;
  config.experts_per_token = text.required("num_experts_per_tok", 1, config.experts);
  config.moe_intermediate_size = text.required("moe_intermediate_size", 1, max_size);
  config.shared_expert_intermediate_size = text.integer("shared_expert_intermediate_size", 0, max_size).value_or(0);
  if (!text.boolean("norm_topk_prob").value_or(true)) {
    text.bad("norm_topk_prob", "is false; the routing weights of this family are always normalized");
  }
  if (text.integer("decoder_sparse_step", 0, max_layers).value_or(1) != 1) {
    text.bad("decoder_sparse_step", "is not 1; list dense layers in mlp_only_layers instead");
  }
}

void read_mtp(const ConfigFields& text, Qwen3_5Config& config) {
  config.mtp_layers = text.integer("mtp_num_hidden_layers", 0, max_layers);
  if (config.mtp_layers.value_or(0) > 1) {
    text.bad("mtp_num_hidden_layers", "is {}; supported are 0 and 1", *config.mtp_layers);
  }
  if (text.boolean("mtp_use_dedicated_embeddings").value_or(false)) {
    text.bad("mtp_use_dedicated_embeddings", "is true; supported is false (embedding and head shared)");
  }
}

Qwen3_5VisionConfig read_vision(const ConfigFields& vision, std::int64_t hidden_size) {
  Qwen3_5VisionConfig config;
  config.depth = vision.required("depth", 1, max_layers);
  config.hidden_size = vision.required("hidden_size", 1, max_size);
  config.intermediate_size = vision.required("intermediate_size", 1, max_size);
  config.heads = vision.required("num_heads", 1, max_heads);
  config.out_hidden_size = vision.integer("out_hidden_size", 1, max_size).value_or(hidden_size);
  config.in_channels = vision.integer("in_channels", 1, 64).value_or(3);
  config.patch_size = vision.integer("patch_size", 1, 1024).value_or(16);
  config.temporal_patch_size = vision.integer("temporal_patch_size", 1, 64).value_or(2);
  config.spatial_merge_size = vision.integer("spatial_merge_size", 1, 64).value_or(2);
  config.position_embeddings = vision.required("num_position_embeddings", 1, max_size);
  if (config.out_hidden_size != hidden_size) {
    vision.bad("out_hidden_size", "is {}, expected the text's hidden_size {}", config.out_hidden_size, hidden_size);
  }
  const std::string activation = vision.text("hidden_act").value_or("gelu_pytorch_tanh");
  if (activation != "gelu_pytorch_tanh") {
    vision.bad("hidden_act", "is \"{}\"; supported is gelu_pytorch_tanh", activation);
  }
  const auto deepstack = vision.integers("deepstack_visual_indexes", 0, max_layers);
  if (deepstack && !deepstack->empty())
    vision.bad("deepstack_visual_indexes", "is not empty; deepstack is not supported");
  return config;
}

void read_tokens(const ConfigFields& fields, Qwen3_5Config& config) {
  const Json* eos = fields.find("eos_token_id");
  if (eos == nullptr) return;
  const auto ids = eos->is_array() ? fields.integers("eos_token_id", 0, config.vocab_size - 1)
                                   : std::vector{fields.required("eos_token_id", 0, config.vocab_size - 1)};
  for (const std::int64_t id : *ids) config.stop_tokens.push_back(static_cast<std::int32_t>(id));
}

}  // namespace

std::int64_t Qwen3_5Config::rotary_frequencies() const {
  return static_cast<std::int64_t>(static_cast<double>(head_dim) * rope.partial_rotary_factor) / 2;
}

std::int64_t Qwen3_5Config::max_context() const {
  if (!rope.yarn) return max_position_embeddings;
  return std::max(max_position_embeddings,
                  static_cast<std::int64_t>(rope.original_max_position_embeddings * rope.factor));
}

Qwen3_5Config parse_qwen3_5_config(const Json& json) {
  const ConfigFields top(json, "");
  Qwen3_5Config config;
  config.architecture = read_architecture(top);
  if (const Json* hints = top.find("quantization_config")) config.storage = read_storage_hints(*hints);
  const Json* nested = top.find("text_config");
  const ConfigFields text(nested == nullptr ? json : *nested, nested == nullptr ? "" : "text_config");

  config.vocab_size = text.required("vocab_size", 1, max_size);
  config.hidden_size = text.required("hidden_size", 2, max_size);
  config.layers = text.required("num_hidden_layers", 1, max_layers);
  config.rms_norm_eps = static_cast<float>(text.number("rms_norm_eps", 0.0, 1.0).value_or(1e-6));
  config.max_position_embeddings = text.required("max_position_embeddings", 1, max_size * 64);
  read_attention(text, config);
  read_delta_net(text, config);
  read_mlp(text, config);
  read_mtp(text, config);
  config.full_attention = read_layer_types(text, config.layers);
  const Json* rope = text.find("rope_parameters");
  read_rope(text, rope == nullptr ? text.find("rope_scaling") : rope, config.rope);
  if (config.rope.yarn && config.rope.original_max_position_embeddings == 0.0) {
    config.rope.original_max_position_embeddings = static_cast<double>(config.max_position_embeddings);
  }
  const std::int64_t frequencies = config.rotary_frequencies();
  if (frequencies < 1) text.bad("rope_parameters.partial_rotary_factor", "leaves no dimension to rotate");
  auto& sections = config.rope.mrope_section;
  if (sections.empty() && frequencies == 32) sections = {11, 11, 10};
  if (!sections.empty() && sections[0] + sections[1] + sections[2] != frequencies) {
    text.bad("rope_parameters.mrope_section", "sums to {}, expected {} (head_dim x partial_rotary_factor / 2)",
             sections[0] + sections[1] + sections[2], frequencies);
  }
  config.tie_word_embeddings =
      top.boolean("tie_word_embeddings").value_or(text.boolean("tie_word_embeddings").value_or(false));
  config.language_model_only = top.boolean("language_model_only").value_or(false);
  if (const Json* vision = top.find("vision_config"); vision != nullptr && !config.language_model_only) {
    config.vision = read_vision(ConfigFields(*vision, "vision_config"), config.hidden_size);
  }
  read_tokens(text, config);
  if (nested != nullptr) read_tokens(top, config);
  config.image_token = top.integer("image_token_id", 0, max_size).value_or(-1);
  config.video_token = top.integer("video_token_id", 0, max_size).value_or(-1);
  return config;
}

}  // namespace sluice
