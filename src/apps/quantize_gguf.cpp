#include "apps/quantize_gguf.h"

#include <algorithm>

#include "base/error.h"

namespace sluice {

namespace {

/// Every which layer is full attention, if they are as regular as that.
std::optional<std::uint32_t> full_attention_interval(const std::vector<bool>& full) {
  const auto first = std::find(full.begin(), full.end(), true);
  if (first == full.end()) return std::nullopt;
  const auto interval = static_cast<std::size_t>(first - full.begin()) + 1;
  for (std::size_t i = 0; i < full.size(); ++i) {
    if (full[i] != ((i + 1) % interval == 0)) return std::nullopt;
  }
  return static_cast<std::uint32_t>(interval);
}

/// Keys of one architecture: "block_count" is "qwen35.block_count".
class ArchitectureKeys {
 public:
  ArchitectureKeys(GgufKeys& keys, const std::string& architecture) : keys_(keys), architecture_(architecture) {}
  void integer(std::string_view name, std::int64_t value) { keys_.add(at(name), static_cast<std::uint32_t>(value)); }
  void number(std::string_view name, double value) { keys_.add(at(name), static_cast<float>(value)); }
  template <class T>
  void add(std::string_view name, const T& value) {
    keys_.add(at(name), value);
  }

 private:
  std::string at(std::string_view name) const { return fmt::format("{}.{}", architecture_, name); }
  GgufKeys& keys_;
  const std::string& architecture_;
};

void add_rope(ArchitectureKeys& keys, const Qwen3_5Config& config) {
  const Qwen3_5RopeConfig& rope = config.rope;
  keys.number("rope.freq_base", rope.theta);
  keys.integer("rope.dimension_count", 2 * config.rotary_frequencies());
  std::vector<std::int32_t> sections(rope.mrope_section.begin(), rope.mrope_section.end());
  if (sections.empty()) sections = {static_cast<std::int32_t>(config.rotary_frequencies())};
  sections.resize(4, 0);
  keys.add("rope.dimension_sections", std::span<const std::int32_t>(sections));
  if (!rope.yarn) return;
  keys.add("rope.scaling.type", "yarn");
  keys.number("rope.scaling.factor", rope.factor);
  keys.integer("rope.scaling.original_context_length",
               static_cast<std::int64_t>(rope.original_max_position_embeddings));
  keys.number("rope.scaling.yarn_beta_fast", rope.beta_fast);
  keys.number("rope.scaling.yarn_beta_slow", rope.beta_slow);
}

void add_layers(ArchitectureKeys& keys, const Qwen3_5Config& config, const GgufQwenBlocks& blocks) {
  std::vector<bool> recurrent;
  for (const bool full : config.full_attention) recurrent.push_back(!full);
  recurrent.resize(recurrent.size() + static_cast<std::size_t>(blocks.drafts), false);
  keys.add("attention.recurrent_layers", recurrent);
  if (const auto interval = full_attention_interval(config.full_attention)) {
    keys.integer("full_attention_interval", *interval);
  }
}

void add_mlp(ArchitectureKeys& keys, const Qwen3_5Config& config) {
  if (config.experts == 0) return keys.integer("feed_forward_length", config.intermediate_size);
  keys.integer("expert_count", config.experts);
  keys.integer("expert_used_count", config.experts_per_token);
  keys.integer("expert_feed_forward_length", config.moe_intermediate_size);
  keys.integer("expert_shared_feed_forward_length", config.shared_expert_intermediate_size);
}

void add_model(GgufKeys& all, const Qwen3_5Config& config, const GgufQwenBlocks& blocks) {
  ArchitectureKeys keys(all, blocks.architecture);
  keys.integer("block_count", blocks.layers + blocks.drafts);
  if (blocks.drafts > 0) keys.integer("nextn_predict_layers", blocks.drafts);
  keys.integer("context_length", config.max_position_embeddings);
  keys.integer("embedding_length", config.hidden_size);
  keys.integer("attention.head_count", config.heads);
  keys.integer("attention.head_count_kv", config.kv_heads);
  keys.integer("attention.key_length", config.head_dim);
  keys.integer("attention.value_length", config.head_dim);
  keys.number("attention.layer_norm_rms_epsilon", static_cast<double>(config.rms_norm_eps));
  add_rope(keys, config);
  keys.integer("ssm.conv_kernel", config.conv_taps);
  keys.integer("ssm.state_size", config.key_dim);
  keys.integer("ssm.group_count", config.key_heads);
  keys.integer("ssm.time_step_rank", config.value_heads);
  keys.integer("ssm.inner_size", config.value_heads * config.value_dim);
  add_layers(keys, config, blocks);
  add_mlp(keys, config);
}

/// What generation_config.json says of sampling.
void add_sampling(GgufKeys& keys, const std::map<std::string, std::string>& texts) {
  const auto found = texts.find("generation_config.json");
  if (found == texts.end()) return;
  const Json config = parse_json(found->second, found->first);
  if (config.is_object() && config.contains("do_sample") && config["do_sample"] == false) {
    return keys.add("general.sampling.temp", 0.0f);
  }
  constexpr std::pair<const char*, const char*> numbers[] = {{"temperature", "general.sampling.temp"},
                                                             {"top_p", "general.sampling.top_p"},
                                                             {"min_p", "general.sampling.min_p"},
                                                             {"repetition_penalty", "general.sampling.penalty_repeat"}};
  for (const auto& [name, key] : numbers) {
    const Json* value = config.is_object() && config.contains(name) ? &config[name] : nullptr;
    if (value != nullptr && value->is_number()) keys.add(key, value->get<float>());
  }
  const Json* top_k = config.is_object() && config.contains("top_k") ? &config["top_k"] : nullptr;
  if (top_k != nullptr && top_k->is_number_unsigned()) keys.add("general.sampling.top_k", top_k->get<std::uint32_t>());
}

}  // namespace

void check_fits_gguf(const Qwen3_5Config& config) {
  const Qwen3_5RopeConfig& rope = config.rope;
  const auto refuse = [](std::string_view what) {
    fail<LoadError>("config.json: {}, which a GGUF file of this architecture cannot say; use a folder's format", what);
  };
  if (config.attention_bias) refuse("attention_bias is true");
  if (!config.attn_output_gate) refuse("attn_output_gate is false");
  if (config.output_gate != GateActivation::swish) refuse("output_gate_type is not swish");
  if (config.experts > 0 && std::ranges::count(config.dense_mlp, true) > 0) refuse("mlp_only_layers is not empty");
  if (!rope.mrope_interleaved) refuse("mrope_interleaved is false");
  if (rope.attention_factor || rope.mscale || rope.mscale_all_dim) refuse("the attention factor of YaRN is set");
  if (!rope.truncate) refuse("truncate of YaRN is false");
}

GgufQwenBlocks gguf_blocks(const Qwen3_5Config& config, bool has_draft_head) {
  return {config.experts > 0 ? "qwen35moe" : "qwen35", config.layers, has_draft_head ? 1 : 0};
}

GgufKeys gguf_keys(const Qwen3_5Config& config, const GgufQwenBlocks& blocks, const std::string& model_name,
                   std::uint32_t file_type, const std::map<std::string, std::string>& texts) {
  constexpr std::uint32_t quantization_version = 2;
  GgufKeys keys;
  keys.add("general.architecture", std::string_view(blocks.architecture));
  keys.add("general.type", "model");
  keys.add("general.name", std::string_view(model_name));
  keys.add("general.file_type", file_type);
  keys.add("general.quantization_version", quantization_version);
  add_sampling(keys, texts);
  add_model(keys, config, blocks);
  add_gguf_tokenizer(keys, config, texts);
  return keys;
}

}  // namespace sluice
