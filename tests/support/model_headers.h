#pragma once
#include <string>

#include <fmt/format.h>

#include "base/json.h"
#include "support/header_checkpoint.h"
#include "weights/ggml_blocks.h"

namespace sluice::test {

/// Of a model of four layers, the last with full attention.
struct ModelSizes {
  std::int64_t hidden, intermediate, experts, heads, kv_heads, value_heads, vocabulary = 24832;
};

/// Its config.json.
inline Json model_config(const ModelSizes& sizes) {
  Json config = {{"architectures", {"Qwen3_5ForCausalLM"}},
                 {"vocab_size", sizes.vocabulary},
                 {"hidden_size", sizes.hidden},
                 {"num_hidden_layers", 4},
                 {"num_attention_heads", sizes.heads},
                 {"num_key_value_heads", sizes.kv_heads},
                 {"linear_num_key_heads", 16},
                 {"linear_num_value_heads", sizes.value_heads},
                 {"max_position_embeddings", 1024}};
  if (sizes.experts > 0) {
    config["num_experts"] = sizes.experts;
    config["num_experts_per_tok"] = 1;
    config["moe_intermediate_size"] = config["shared_expert_intermediate_size"] = sizes.intermediate;
  } else {
    config["intermediate_size"] = sizes.intermediate;
  }
  return config;
}

/// Adds the matrix NAME [out, in] in some form.
using AddMatrix = void (*)(HeaderCheckpoint& to, const std::string& name, std::int64_t out, std::int64_t in);

inline void as_bf16(HeaderCheckpoint& to, const std::string& name, std::int64_t out, std::int64_t in) {
  to.add(name + ".weight", DType::bf16, {out, in});
}
inline void as_fp8_blocks(HeaderCheckpoint& to, const std::string& name, std::int64_t out, std::int64_t in) {
  to.add(name + ".weight", DType::f8_e4m3, {out, in});
  to.add(name + ".weight_scale_inv", DType::bf16, {(out + 127) / 128, (in + 127) / 128});
}
inline void as_fp8_rows(HeaderCheckpoint& to, const std::string& name, std::int64_t out, std::int64_t in) {
  to.add(name + ".weight", DType::f8_e4m3, {out, in});
  to.add(name + ".weight_scale", DType::f32, {out, 1});
}
inline void as_nvfp4(HeaderCheckpoint& to, const std::string& name, std::int64_t out, std::int64_t in) {
  to.add(name + ".weight", DType::u8, {out, in / 2});
  to.add(name + ".weight_scale", DType::f8_e4m3, {out, in / 16});
  to.add(name + ".weight_scale_2", DType::f32, {});
}
inline void as_mxfp4(HeaderCheckpoint& to, const std::string& name, std::int64_t out, std::int64_t in) {
  to.add(name + ".weight", DType::u8, {out, in / 2});
  to.add(name + ".weight_scale", DType::u8, {out, in / 32});
}
inline void as_fp8_tensor(HeaderCheckpoint& to, const std::string& name, std::int64_t out, std::int64_t in) {
  to.add(name + ".weight", DType::f8_e4m3, {out, in});
  to.add(name + ".weight_scale", DType::f32, {});
}
inline void as_packed_nvfp4(HeaderCheckpoint& to, const std::string& name, std::int64_t out, std::int64_t in) {
  to.add(name + ".weight_packed", DType::u8, {out, in / 2});
  to.add(name + ".weight_scale", DType::f8_e4m3, {out, in / 16});
  to.add(name + ".weight_global_scale", DType::f32, {1});
}
inline void as_packed_int4(HeaderCheckpoint& to, const std::string& name, std::int64_t out, std::int64_t in) {
  to.add(name + ".weight_packed", DType::i32, {out, in / 8});
  to.add(name + ".weight_scale", DType::bf16, {out, in / 128});
}
inline void as_awq(HeaderCheckpoint& to, const std::string& name, std::int64_t out, std::int64_t in) {
  to.add(name + ".qweight", DType::i32, {in, out / 8});
  to.add(name + ".scales", DType::f16, {in / 128, out});
  to.add(name + ".qzeros", DType::i32, {in / 128, out / 8});
}
inline void as_gptq(HeaderCheckpoint& to, const std::string& name, std::int64_t out, std::int64_t in) {
  to.add(name + ".qweight", DType::i32, {in / 8, out});
  to.add(name + ".scales", DType::f16, {in / 128, out});
  to.add(name + ".qzeros", DType::i32, {in / 128, out / 8});
}
template <int id>
void as_blocks(HeaderCheckpoint& to, const std::string& name, std::int64_t out, std::int64_t in) {
  to.add(name + ".weight", DType::u8, {out, in}, find_block_type(id));
}
inline constexpr int q8_0 = 8, q4_k = 12, q5_k = 13, q6_k = 14;

inline void add_gated(HeaderCheckpoint& to, AddMatrix add, const std::string& prefix, const ModelSizes& sizes) {
  add(to, prefix + "gate_proj", sizes.intermediate, sizes.hidden);
  add(to, prefix + "up_proj", sizes.intermediate, sizes.hidden);
  add(to, prefix + "down_proj", sizes.hidden, sizes.intermediate);
}

inline void add_mixer(HeaderCheckpoint& to, AddMatrix add, const std::string& layer, const ModelSizes& sizes,
                      bool full) {
  const std::int64_t values = sizes.value_heads * 128;
  const std::string own = layer + (full ? "self_attn." : "linear_attn.");
  if (full) {
    add(to, own + "q_proj", sizes.heads * 512, sizes.hidden);
    for (const char* name : {"k_proj", "v_proj"}) add(to, own + name, sizes.kv_heads * 256, sizes.hidden);
    add(to, own + "o_proj", sizes.hidden, sizes.heads * 256);
    for (const char* name : {"q_norm", "k_norm"}) to.add(own + name + ".weight", DType::bf16, {256});
    return;
  }
  add(to, own + "in_proj_qkv", 4096 + values, sizes.hidden);
  add(to, own + "in_proj_z", values, sizes.hidden);
  for (const char* name : {"in_proj_a", "in_proj_b"}) as_bf16(to, own + name, sizes.value_heads, sizes.hidden);
  to.add(own + "conv1d.weight", DType::bf16, {4096 + values, 1, 4});
  for (const char* name : {"A_log", "dt_bias"}) to.add(own + name, DType::bf16, {sizes.value_heads});
  to.add(own + "norm.weight", DType::bf16, {128});
  add(to, own + "out_proj", sizes.hidden, values);
}

inline HeaderCheckpoint model_headers(const ModelSizes& sizes, AddMatrix add, AddMatrix add_attention) {
  HeaderCheckpoint to;
  as_bf16(to, "model.embed_tokens", sizes.vocabulary, sizes.hidden);
  as_bf16(to, "lm_head", sizes.vocabulary, sizes.hidden);
  to.add("model.norm.weight", DType::bf16, {sizes.hidden});
  for (int i = 0; i < 4; ++i) {
    const std::string layer = fmt::format("model.layers.{}.", i);
    for (const char* norm : {"input_layernorm.weight", "post_attention_layernorm.weight"}) {
      to.add(layer + norm, DType::bf16, {sizes.hidden});
    }
    add_mixer(to, add_attention, layer, sizes, i == 3);
    if (sizes.experts == 0) {
      add_gated(to, add, layer + "mlp.", sizes);
      continue;
    }
    as_bf16(to, layer + "mlp.gate", sizes.experts, sizes.hidden);
    as_bf16(to, layer + "mlp.shared_expert_gate", 1, sizes.hidden);
    add_gated(to, add, layer + "mlp.shared_expert.", sizes);
    for (std::int64_t e = 0; e < sizes.experts; ++e) {
      add_gated(to, add, fmt::format("{}mlp.experts.{}.", layer, e), sizes);
    }
  }
  return to;
}

}  // namespace sluice::test
