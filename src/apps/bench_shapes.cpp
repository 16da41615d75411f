#include "apps/bench_shapes.h"

#include <cmath>

#include "base/error.h"
#include "models/qwen3_5_config.h"
#include "weights/random_checkpoint.h"

namespace sluice {

namespace {

/// model.md 1.3.
struct PublishedShape {
  const char* name;
  int layers, hidden, intermediate, experts, experts_per_token, heads, kv_heads, value_heads;
  bool tied;
};

constexpr PublishedShape shapes[] = {
    {"qwen3.5-0.8b", 24, 1024, 3584, 0, 0, 8, 2, 16, true},
    {"qwen3.5-2b", 24, 2048, 6144, 0, 0, 8, 2, 16, true},
    {"qwen3.5-4b", 32, 2560, 9216, 0, 0, 16, 4, 32, true},
    {"qwen3.5-9b", 32, 4096, 12288, 0, 0, 16, 4, 32, false},
    {"qwen3.5-27b", 64, 5120, 17408, 0, 0, 24, 4, 48, false},
    {"qwen3.5-35b-a3b", 40, 2048, 512, 256, 8, 16, 2, 32, false},
    {"qwen3.5-122b-a10b", 48, 3072, 1024, 256, 8, 32, 2, 64, false},
};

/// Collects tensors whose products keep the scale of what they multiply.
class TensorList {
 public:
  void matrix(const std::string& name, std::vector<std::int64_t> shape) {
    // Numbers from 1 to 4 with random signs have a deviation of about 2.4.
    const double wanted = 1.0 / (2.4 * std::sqrt(static_cast<double>(shape.back())));
    add(name, std::move(shape), static_cast<float>(wanted), RandomSign::both);
  }
  void norm(const std::string& name, std::int64_t size) { add(name, {size}, 0.01f, RandomSign::both); }
  void add(const std::string& name, std::vector<std::int64_t> shape, float magnitude, RandomSign sign) {
    tensors_.push_back({name, std::move(shape), magnitude, sign});
  }
  std::vector<RandomTensor> take() { return std::move(tensors_); }

 private:
  std::vector<RandomTensor> tensors_;
};

void add_attention(TensorList& list, const std::string& prefix, const Qwen3_5Config& config) {
  const std::int64_t hidden = config.hidden_size, query = config.heads * config.head_dim;
  list.matrix(prefix + "q_proj.weight", {config.attn_output_gate ? 2 * query : query, hidden});
  list.matrix(prefix + "k_proj.weight", {config.kv_heads * config.head_dim, hidden});
  list.matrix(prefix + "v_proj.weight", {config.kv_heads * config.head_dim, hidden});
  list.matrix(prefix + "o_proj.weight", {hidden, query});
  list.norm(prefix + "q_norm.weight", config.head_dim);
  list.norm(prefix + "k_norm.weight", config.head_dim);
}

void add_delta_net(TensorList& list, const std::string& prefix, const Qwen3_5Config& config) {
  const std::int64_t hidden = config.hidden_size, values = config.value_heads * config.value_dim;
  list.matrix(prefix + "in_proj_qkv.weight", {config.conv_channels(), hidden});
  list.matrix(prefix + "in_proj_z.weight", {values, hidden});
  list.matrix(prefix + "in_proj_b.weight", {config.value_heads, hidden});
  list.matrix(prefix + "in_proj_a.weight", {config.value_heads, hidden});
  list.matrix(prefix + "conv1d.weight", {config.conv_channels(), 1, config.conv_taps});
  list.add(prefix + "A_log", {config.value_heads}, 0.25f, RandomSign::positive);
  list.add(prefix + "dt_bias", {config.value_heads}, 1.0f, RandomSign::negative);
  list.add(prefix + "norm.weight", {config.value_dim}, 0.5f, RandomSign::positive);
  list.matrix(prefix + "out_proj.weight", {hidden, values});
}

void add_mlp(TensorList& list, const std::string& prefix, std::int64_t hidden, std::int64_t intermediate) {
  list.matrix(prefix + "gate_proj.weight", {intermediate, hidden});
  list.matrix(prefix + "up_proj.weight", {intermediate, hidden});
  list.matrix(prefix + "down_proj.weight", {hidden, intermediate});
}

void add_experts(TensorList& list, const std::string& prefix, const Qwen3_5Config& config) {
  const std::int64_t hidden = config.hidden_size, intermediate = config.moe_intermediate_size;
  list.matrix(prefix + "gate.weight", {config.experts, hidden});
  list.matrix(prefix + "experts.gate_up_proj", {config.experts, 2 * intermediate, hidden});
  list.matrix(prefix + "experts.down_proj", {config.experts, hidden, intermediate});
  add_mlp(list, prefix + "shared_expert.", hidden, config.shared_expert_intermediate_size);
  list.matrix(prefix + "shared_expert_gate.weight", {1, hidden});
}

const PublishedShape& find_shape(const std::string& name) {
  for (const PublishedShape& shape : shapes) {
    if (name == shape.name) return shape;
  }
  fail<UsageError>("--shape: \"{}\" is unknown, expected {}", name, fmt::join(shape_names(), ", "));
}

}  // namespace

std::vector<std::string> shape_names() {
  std::vector<std::string> names;
  for (const PublishedShape& shape : shapes) names.emplace_back(shape.name);
  return names;
}

Json shape_config(const std::string& name) {
  const PublishedShape& shape = find_shape(name);
  Json config = {{"architectures", {shape.experts > 0 ? "Qwen3_5MoeForCausalLM" : "Qwen3_5ForCausalLM"}},
                 {"vocab_size", 248320},
                 {"hidden_size", shape.hidden},
                 {"num_hidden_layers", shape.layers},
                 {"num_attention_heads", shape.heads},
                 {"num_key_value_heads", shape.kv_heads},
                 {"head_dim", 256},
                 {"full_attention_interval", 4},
                 {"linear_conv_kernel_dim", 4},
                 {"linear_key_head_dim", 128},
                 {"linear_value_head_dim", 128},
                 {"linear_num_key_heads", 16},
                 {"linear_num_value_heads", shape.value_heads},
                 {"max_position_embeddings", 262144},
                 {"rms_norm_eps", 1e-6},
                 {"mtp_num_hidden_layers", 0},
                 {"tie_word_embeddings", shape.tied},
                 {"rope_parameters",
                  {{"rope_type", "default"},
                   {"rope_theta", 10000000},
                   {"partial_rotary_factor", 0.25},
                   {"mrope_interleaved", true},
                   {"mrope_section", {11, 11, 10}}}}};
  if (shape.experts > 0) {
    config["num_experts"] = shape.experts;
    config["num_experts_per_tok"] = shape.experts_per_token;
    config["moe_intermediate_size"] = shape.intermediate;
    config["shared_expert_intermediate_size"] = shape.intermediate;
  } else {
    config["intermediate_size"] = shape.intermediate;
  }
  return config;
}

std::unique_ptr<Checkpoint> shape_weights(const std::string& name, const Json& config) {
  const Qwen3_5Config parsed = parse_qwen3_5_config(config);
  TensorList list;
  list.add("model.embed_tokens.weight", {parsed.vocab_size, parsed.hidden_size}, 0.01f, RandomSign::both);
  if (!parsed.tie_word_embeddings) list.matrix("lm_head.weight", {parsed.vocab_size, parsed.hidden_size});
  list.norm("model.norm.weight", parsed.hidden_size);
  for (std::int64_t i = 0; i < parsed.layers; ++i) {
    const std::string layer = fmt::format("model.layers.{}.", i);
    list.norm(layer + "input_layernorm.weight", parsed.hidden_size);
    list.norm(layer + "post_attention_layernorm.weight", parsed.hidden_size);
    if (parsed.full_attention[static_cast<std::size_t>(i)]) {
      add_attention(list, layer + "self_attn.", parsed);
    } else {
      add_delta_net(list, layer + "linear_attn.", parsed);
    }
    if (parsed.experts > 0) {
      add_experts(list, layer + "mlp.", parsed);
    } else {
      add_mlp(list, layer + "mlp.", parsed.hidden_size, parsed.intermediate_size);
    }
  }
  return std::make_unique<RandomCheckpoint>(list.take(), "random weights of " + name);
}

}  // namespace sluice
