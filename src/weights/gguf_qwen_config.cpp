#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "weights/gguf_qwen.h"

namespace sluice {

namespace {

constexpr std::int64_t max_blocks = 2048, max_head_dim = 1 << 24;

/// Keys of the architecture: "block_count" is "qwen35.block_count".
class Keys {
 public:
  Keys(const GgufMetadata& metadata, std::string architecture)
      : metadata_(metadata), architecture_(std::move(architecture)) {}

  std::string at(std::string_view name) const { return fmt::format("{}.{}", architecture_, name); }
  template <class... Args>
  [[noreturn]] void bad(std::string_view name, fmt::format_string<Args...> format, Args&&... args) const {
    fail<LoadError>("{}: \"{}\" {}", metadata_.source(), at(name), fmt::format(format, std::forward<Args>(args)...));
  }

  bool has(std::string_view name) const { return metadata_.has(at(name)); }
  std::optional<double> number(std::string_view name) const { return metadata_.number(at(name)); }
  std::optional<bool> boolean(std::string_view name) const { return metadata_.boolean(at(name)); }
  std::optional<std::string_view> text(std::string_view name) const { return metadata_.string(at(name)); }
  std::optional<std::vector<std::int64_t>> list(std::string_view name) const { return metadata_.integers(at(name)); }
  bool is_list(std::string_view name) const { return metadata_.is_array(at(name)); }

  /// One number, or the one that all blocks share that do not have 0.
  std::optional<std::int64_t> integer(std::string_view name) const {
    if (!is_list(name)) return metadata_.integer(at(name));
    std::int64_t shared = 0;
    const auto values = *list(name);
    for (const std::int64_t value : values) {
      if (shared != 0 && value != 0 && value != shared) {
        bad(name, "differs from block to block ({} and {}); that is not supported", shared, value);
      }
      if (value != 0) shared = value;
    }
    return shared;
  }
  std::int64_t required(std::string_view name) const {
    const auto value = integer(name);
    if (!value) bad(name, "is missing");
    return *value;
  }

 private:
  const GgufMetadata& metadata_;
  std::string architecture_;
};

/// Rows of a tensor [.., rows, columns], for keys that some converters leave out.
std::optional<std::int64_t> rows_of(const GgufCheckpoint& file, std::string_view name) {
  const StoredTensor* tensor = file.find(name);
  if (tensor == nullptr || tensor->shape.size() < 2) return std::nullopt;
  return tensor->shape[tensor->shape.size() - 2];
}

Json layer_types(const Keys& keys, std::int64_t layers, std::int64_t blocks) {
  const auto listed = [&](std::string_view name) {
    auto list = *keys.list(name);
    const auto size = static_cast<std::int64_t>(list.size());
    if (size != layers && size != blocks) keys.bad(name, "has {} entries, expected {}", size, blocks);
    list.resize(static_cast<std::size_t>(layers));
    return list;
  };
  Json types = Json::array();
  const auto add = [&](bool full) { types.push_back(full ? "full_attention" : "linear_attention"); };
  if (keys.has("attention.recurrent_layers")) {
    for (const std::int64_t recurrent : listed("attention.recurrent_layers")) add(recurrent == 0);
  } else if (keys.is_list("attention.head_count_kv")) {
    const auto heads = listed("attention.head_count_kv");
    if (std::ranges::find(heads, 0) == heads.end()) return nullptr;
    for (const std::int64_t count : heads) add(count != 0);
  }
  return types.empty() ? Json(nullptr) : types;
}

/// The share that makes a config's head_dim * share exactly this many dimensions.
double rotary_share(const Keys& keys, std::int64_t head_dim) {
  const auto dimensions = keys.integer("rope.dimension_count");
  if (!dimensions || head_dim < 1) return 0.25;
  const double share = static_cast<double>(*dimensions) / static_cast<double>(head_dim);
  if (*dimensions < 0 || *dimensions > head_dim || head_dim > max_head_dim) return share;
  const bool falls_short = static_cast<std::int64_t>(static_cast<double>(head_dim) * share) < *dimensions;
  return falls_short ? std::nextafter(share, 2.0) : share;
}

Json rope_parameters(const Keys& keys, std::int64_t head_dim) {
  std::string type(keys.text("rope.scaling.type").value_or("default"));
  if (type.empty() || type == "none") type = "default";
  Json rope = {{"rope_type", type},
               {"partial_rotary_factor", rotary_share(keys, head_dim)},
               {"mrope_interleaved", keys.boolean("rope.mrope_interleaved").value_or(true)}};
  if (const auto theta = keys.number("rope.freq_base")) rope["rope_theta"] = *theta;
  for (const char* name : {"rope.dimension_sections", "rope.mrope_section", "mrope_sections"}) {
    auto sections = keys.list(name);
    if (!sections) continue;
    if (sections->size() == 4 && sections->back() == 0) sections->pop_back();
    if (sections->size() != 3) keys.bad(name, "is [{}], expected 3 sections", fmt::join(*sections, ", "));
    rope["mrope_section"] = *sections;
    break;
  }
  if (type == "default") return rope;
  constexpr std::pair<const char*, const char*> fields[] = {
      {"rope.scaling.factor", "factor"},
      {"rope.scaling.attn_factor", "attention_factor"},
      {"rope.scaling.yarn_attn_factor", "attention_factor"},
      {"rope.scaling.yarn_beta_fast", "beta_fast"},
      {"rope.scaling.yarn_beta_slow", "beta_slow"},
  };
  for (const auto& [key, field] : fields) {
    if (const auto value = keys.number(key)) rope[field] = *value;
  }
  if (const auto length = keys.integer("rope.scaling.original_context_length")) {
    rope["original_max_position_embeddings"] = *length;
  }
  return rope;
}

/// What llama.cpp would do for these values has no field in a config.
void refuse_unsupported(const Keys& keys) {
  struct Only {
    const char* name;
    double value;
  };
  constexpr Only only[] = {{"rope.scaling.yarn_ext_factor", 1.0}, {"rope.scaling.yarn_log_multiplier", 0.0},
                           {"expert_weights_scale", 1.0},         {"expert_gating_func", 1.0},
                           {"expert_group_count", 1.0},           {"attention.scale", 0.0}};
  for (const Only& row : only) {
    const auto found = keys.number(row.name);
    if (found && *found != row.value && *found != 0.0) {
      keys.bad(row.name, "is {}, which is not supported", *found);
    }
  }
  const auto key_length = keys.integer("attention.key_length"), value_length = keys.integer("attention.value_length");
  if (key_length && value_length && *key_length != *value_length) {
    keys.bad("attention.value_length", "is {}, expected {} as attention.key_length", *value_length, *key_length);
  }
}

void add_experts(Json& text, const Keys& keys, const GgufCheckpoint& file) {
  text["num_experts"] = keys.required("expert_count");
  text["num_experts_per_tok"] = keys.required("expert_used_count");
  auto width = keys.integer("expert_feed_forward_length");
  if (!width) width = rows_of(file, "blk.0.ffn_gate_exps.weight");
  if (!width) keys.bad("expert_feed_forward_length", "is missing");
  text["moe_intermediate_size"] = *width;
  auto shared = keys.integer("expert_shared_feed_forward_length");
  if (!shared) shared = rows_of(file, "blk.0.ffn_gate_shexp.weight");
  text["shared_expert_intermediate_size"] = shared.value_or(0);
  for (const char* name : {"norm_top_k_prob", "expert_weights_norm"}) {
    if (const auto normalized = keys.boolean(name)) text["norm_topk_prob"] = *normalized;
  }
}

Json stop_tokens(const GgufMetadata& metadata) {
  std::vector<std::int64_t> ids;
  for (const char* key : {"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id"}) {
    if (const auto id = metadata.integer(key)) ids.push_back(*id);
  }
  for (const std::int64_t id :
       metadata.integers("tokenizer.ggml.eos_token_ids").value_or(std::vector<std::int64_t>{})) {
    ids.push_back(id);
  }
  std::ranges::sort(ids);
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
  return ids;
}

}  // namespace

GgufQwenBlocks gguf_qwen_blocks(const GgufMetadata& metadata) {
  const auto architecture = metadata.string("general.architecture");
  if (!architecture) fail<LoadError>("{}: has no \"general.architecture\"", metadata.source());
  if (*architecture != "qwen35" && *architecture != "qwen35moe") {
    fail<LoadError>("{}: \"general.architecture\" is \"{}\"; supported are qwen35 and qwen35moe", metadata.source(),
                    *architecture);
  }
  GgufQwenBlocks blocks{std::string(*architecture)};
  const Keys keys(metadata, blocks.architecture);
  const std::int64_t all = keys.required("block_count");
  blocks.drafts = keys.integer("nextn_predict_layers").value_or(0);
  if (all < 1 || all > max_blocks || blocks.drafts < 0 || blocks.drafts >= all) {
    keys.bad("block_count", "is {} with {} of the draft head; expected 1 to {}, at least one of the model", all,
             blocks.drafts, max_blocks);
  }
  blocks.layers = all - blocks.drafts;
  return blocks;
}

Json gguf_qwen_config(const GgufCheckpoint& file) {
  const GgufMetadata& metadata = file.metadata();
  const GgufQwenBlocks blocks = gguf_qwen_blocks(metadata);
  const Keys keys(metadata, blocks.architecture);
  refuse_unsupported(keys);
  const bool sparse = blocks.architecture == "qwen35moe";
  const auto vocabulary = rows_of(file, "token_embd.weight");
  if (!vocabulary) fail<LoadError>("{}: has no matrix \"token_embd.weight\"", metadata.source());

  const std::int64_t hidden = keys.required("embedding_length"), heads = keys.required("attention.head_count");
  const std::int64_t head_dim =
      keys.integer("attention.key_length").value_or(heads > 0 ? hidden / heads : std::int64_t{0});
  const std::int64_t value_heads = keys.required("ssm.time_step_rank"), inner = keys.required("ssm.inner_size");
  if (value_heads < 1 || inner % value_heads != 0) {
    keys.bad("ssm.inner_size", "is {}, not a multiple of the {} heads of ssm.time_step_rank", inner, value_heads);
  }
  Json text = {{"vocab_size", *vocabulary},
               {"hidden_size", hidden},
               {"num_hidden_layers", blocks.layers},
               {"num_attention_heads", heads},
               {"num_key_value_heads", keys.required("attention.head_count_kv")},
               {"head_dim", head_dim},
               {"max_position_embeddings", keys.required("context_length")},
               {"linear_conv_kernel_dim", keys.required("ssm.conv_kernel")},
               {"linear_key_head_dim", keys.required("ssm.state_size")},
               {"linear_value_head_dim", inner / value_heads},
               {"linear_num_key_heads", keys.required("ssm.group_count")},
               {"linear_num_value_heads", value_heads},
               {"rope_parameters", rope_parameters(keys, head_dim)},
               {"mtp_num_hidden_layers", blocks.drafts}};
  const auto eps = keys.number("attention.layer_norm_rms_epsilon");
  if (!eps) keys.bad("attention.layer_norm_rms_epsilon", "is missing");
  text["rms_norm_eps"] = *eps;
  if (Json types = layer_types(keys, blocks.layers, blocks.layers + blocks.drafts); !types.is_null()) {
    text["layer_types"] = std::move(types);
  } else {
    text["full_attention_interval"] = keys.integer("full_attention_interval").value_or(4);
  }
  if (sparse) {
    add_experts(text, keys, file);
  } else {
    text["intermediate_size"] = keys.required("feed_forward_length");
  }
  if (Json ids = stop_tokens(metadata); !ids.empty()) text["eos_token_id"] = std::move(ids);
  text["model_type"] = sparse ? "qwen3_5_moe_text" : "qwen3_5_text";
  return {{"architectures",
           Json::array({sparse ? "Qwen3_5MoeForConditionalGeneration" : "Qwen3_5ForConditionalGeneration"})},
          {"model_type", sparse ? "qwen3_5_moe" : "qwen3_5"},
          {"language_model_only", true},
          {"text_config", std::move(text)},
          {"tie_word_embeddings", file.find("output.weight") == nullptr}};
}

}  // namespace sluice
