#include "weights/gguf_qwen.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "base/error.h"
#include "support/gguf_file.h"
#include "support/temporary_directory.h"

namespace sluice {
namespace {

using test::GgufFile;
using test::message_of;
using test::TemporaryDirectory;

/// What every file of the family says, for two layers and sizes that differ from each other. Keys in `without` are left
/// out.
GgufFile keys(const std::string& architecture = "qwen35", const std::vector<std::string>& without = {}) {
  GgufFile file;
  file.text("general.architecture", architecture);
  const auto add = [&](const std::string& name, std::uint32_t value) {
    if (std::ranges::find(without, name) == without.end()) file.u32(architecture + "." + name, value);
  };
  add("block_count", 2);
  add("context_length", 4096);
  add("embedding_length", 96);
  add("attention.head_count", 6);
  add("attention.head_count_kv", 2);
  add("attention.key_length", 48);
  add("rope.dimension_count", 12);
  add("ssm.conv_kernel", 4);
  add("ssm.state_size", 16);
  add("ssm.group_count", 2);
  add("ssm.time_step_rank", 6);
  add("ssm.inner_size", 192);
  if (architecture == "qwen35moe") {
    add("expert_count", 4);
    add("expert_used_count", 2);
    add("expert_feed_forward_length", 24);
    add("expert_shared_feed_forward_length", 40);
  } else {
    add("feed_forward_length", 80);
  }
  file.f32(architecture + ".attention.layer_norm_rms_epsilon", 1e-6f);
  file.zeros("token_embd.weight", {96, 50});
  return file;
}

class GgufQwen : public testing::Test {
 protected:
  std::shared_ptr<const GgufCheckpoint> open(const GgufFile& file) {
    return std::make_shared<const GgufCheckpoint>(directory_.write("x.gguf", file.bytes()));
  }
  Json text_config(const GgufFile& file) { return gguf_qwen_config(*open(file))["text_config"]; }
  std::string config_error(const GgufFile& file) {
    const auto opened = open(file);
    return message_of<LoadError>([&] { gguf_qwen_config(*opened); });
  }
  TemporaryDirectory directory_;
};

TEST_F(GgufQwen, ShowsPublishedNamesAndShapes) {
  GgufFile file = keys();
  file.zeros("blk.0.attn_qkv.weight", {96, 10}).zeros("blk.0.ssm_conv1d.weight", {4, 10}).zeros("blk.0.ssm_a", {6});
  file.zeros("blk.0.ssm_dt", {6}).zeros("blk.1.attn_q.weight", {96, 12}).zeros("output.weight", {96, 50});
  const GgufQwenCheckpoint checkpoint(open(file));
  const std::string layers = "model.language_model.layers.";
  EXPECT_EQ(checkpoint.names(),
            (std::vector<std::string>{"lm_head.weight", "model.language_model.embed_tokens.weight",
                                      layers + "0.linear_attn.A_log", layers + "0.linear_attn.conv1d.weight",
                                      layers + "0.linear_attn.dt_bias", layers + "0.linear_attn.in_proj_qkv.weight",
                                      layers + "1.self_attn.q_proj.weight"}));
  EXPECT_EQ(checkpoint.find(layers + "0.linear_attn.conv1d.weight")->shape, (std::vector<std::int64_t>{10, 1, 4}));
  EXPECT_EQ(checkpoint.find(layers + "0.linear_attn.in_proj_qkv.weight")->shape, (std::vector<std::int64_t>{10, 96}));
  EXPECT_EQ(checkpoint.find(layers + "0.linear_attn.A_log")->shape, (std::vector<std::int64_t>{6}));
  EXPECT_EQ(checkpoint.find("blk.0.ssm_a"), nullptr);
}

TEST_F(GgufQwen, GivesTheBytesOfTheFile) {
  const std::vector<float> values{1, 2, 3, 4, 5, 6};
  const auto file = open(keys().floats("blk.0.ssm_a", {6}, values));
  const GgufQwenCheckpoint checkpoint(file);
  const StoredTensor& tensor = *checkpoint.find("model.language_model.layers.0.linear_attn.A_log");
  EXPECT_EQ(std::memcmp(checkpoint.bytes(tensor).data(), values.data(), 24), 0);
  checkpoint.release(tensor);
  EXPECT_EQ(std::memcmp(checkpoint.bytes(tensor).data(), values.data(), 24), 0);
  EXPECT_EQ(checkpoint.total_bytes(), file->total_bytes());
}

TEST_F(GgufQwen, PutsBackDimensionsOfOne) {
  GgufFile file = keys("qwen35moe");
  file.zeros("blk.0.ffn_gate_inp_shexp.weight", {96}).zeros("blk.0.ffn_down_exps.weight", {24, 96, 4});
  file.zeros("blk.0.ffn_gate_exps.weight", {96, 24, 4}).zeros("blk.0.ffn_gate_up_exps.weight", {96, 48, 4});
  const GgufQwenCheckpoint checkpoint(open(file));
  const std::string mlp = "model.language_model.layers.0.mlp.";
  EXPECT_EQ(checkpoint.find(mlp + "shared_expert_gate.weight")->shape, (std::vector<std::int64_t>{1, 96}));
  EXPECT_EQ(checkpoint.find(mlp + "experts.gate_proj")->shape, (std::vector<std::int64_t>{4, 24, 96}));
  EXPECT_EQ(checkpoint.find(mlp + "experts.gate_up_proj")->shape, (std::vector<std::int64_t>{4, 48, 96}));
  EXPECT_EQ(checkpoint.find(mlp + "experts.down_proj")->shape, (std::vector<std::int64_t>{4, 96, 24}));
}

TEST_F(GgufQwen, TheBlocksBehindTheLayersAreTheDraftHead) {
  GgufFile file = keys();
  file.u32("qwen35.nextn_predict_layers", 1)
      .zeros("blk.0.attn_norm.weight", {96})
      .zeros("blk.1.attn_norm.weight", {96});
  file.zeros("blk.1.nextn.eh_proj.weight", {192, 96}).zeros("blk.1.nextn.enorm.weight", {96});
  file.zeros("blk.1.nextn.hnorm.weight", {96}).zeros("blk.1.nextn.shared_head_norm.weight", {96});
  file.zeros("blk.1.nextn.embed_tokens.weight", {96, 50}).zeros("blk.1.nextn.shared_head_head.weight", {96, 50});
  const GgufQwenCheckpoint checkpoint(open(file));
  EXPECT_EQ(checkpoint.names(),
            (std::vector<std::string>{"model.language_model.embed_tokens.weight",
                                      "model.language_model.layers.0.input_layernorm.weight", "mtp.fc.weight",
                                      "mtp.layers.0.input_layernorm.weight", "mtp.norm.weight",
                                      "mtp.pre_fc_norm_embedding.weight", "mtp.pre_fc_norm_hidden.weight"}));
  EXPECT_EQ(checkpoint.left_out().size(), 2u);
  const Json config = text_config(file);
  EXPECT_EQ(config["num_hidden_layers"], 1);
  EXPECT_EQ(config["mtp_num_hidden_layers"], 1);
}

TEST_F(GgufQwen, LeavesOutWhatItDoesNotReadAndSaysSo) {
  GgufFile file = keys();
  file.zeros("v.blk.0.ln1.weight", {8}).zeros("v.patch_embed.weight", {8}).zeros("mm.0.weight", {8});
  file.zeros("mtp.fc.weight", {8}).zeros("rope_freqs.weight", {8});
  const auto opened = open(file);
  const GgufQwenCheckpoint checkpoint(opened);
  EXPECT_EQ(checkpoint.names().size(), 1u);
  EXPECT_LT(checkpoint.total_bytes(), opened->total_bytes());
  const std::vector<std::string> lines = checkpoint.left_out();
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_SAYS(lines[3], "v.* (2 tensors): no part of the text");
}

TEST_F(GgufQwen, KeepsNamesThatTheFamilyDoesNotHave) {
  GgufFile file = keys();
  for (const char* name : {"blk.0.other.weight", "blk.2.attn_norm.weight", "blk.00.attn_norm.weight", "blk.x.ssm_a",
                           "blk.0.nextn.enorm.weight", "blk.99999999999999999999.ssm_a", "blk.1"}) {
    file.zeros(name, {96});
    EXPECT_NE(GgufQwenCheckpoint(open(file)).find(name), nullptr) << name;
  }
}

TEST_F(GgufQwen, RefusesTwoTensorsThatMeanTheSame) {
  const auto file = open(keys().zeros("blk.0.ssm_dt", {6}).zeros("blk.0.ssm_dt.bias", {6}));
  EXPECT_SAYS(message_of<LoadError>([&] { GgufQwenCheckpoint checkpoint(file); }), "both mean");
}

TEST_F(GgufQwen, SaysWhatItsNumbersMean) {
  const Conventions tiled = GgufQwenCheckpoint(open(keys())).conventions();
  EXPECT_TRUE(tiled.norms_hold_scale && tiled.decay_ready && tiled.value_heads_tiled);
  GgufFile equal = keys("qwen35", {"ssm.time_step_rank"});
  EXPECT_FALSE(GgufQwenCheckpoint(open(equal.u32("qwen35.ssm.time_step_rank", 2))).conventions().value_heads_tiled);
  GgufFile grouped = keys();
  grouped.boolean("qwen35.ssm.v_head_reordered", false);
  EXPECT_FALSE(GgufQwenCheckpoint(open(grouped)).conventions().value_heads_tiled);
}

TEST_F(GgufQwen, MakesTheConfigOfADenseModel) {
  const Json config = gguf_qwen_config(*open(keys().f32("qwen35.rope.freq_base", 5e6f)));
  EXPECT_EQ(config["architectures"], Json::array({"Qwen3_5ForConditionalGeneration"}));
  EXPECT_EQ(config["tie_word_embeddings"], true);
  const Json& text = config["text_config"];
  EXPECT_EQ(text["vocab_size"], 50);
  EXPECT_EQ(text["hidden_size"], 96);
  EXPECT_EQ(text["intermediate_size"], 80);
  EXPECT_EQ(text["num_attention_heads"], 6);
  EXPECT_EQ(text["num_key_value_heads"], 2);
  EXPECT_EQ(text["head_dim"], 48);
  EXPECT_EQ(text["linear_value_head_dim"], 32);
  EXPECT_EQ(text["linear_key_head_dim"], 16);
  EXPECT_EQ(text["full_attention_interval"], 4);
  EXPECT_FALSE(text.contains("layer_types"));
  EXPECT_EQ(text["rope_parameters"]["rope_type"], "default");
  EXPECT_EQ(text["rope_parameters"]["rope_theta"], 5e6);
  EXPECT_EQ(text["rope_parameters"]["partial_rotary_factor"], 0.25);
  EXPECT_FALSE(text["rope_parameters"].contains("mrope_section"));
}

TEST_F(GgufQwen, MakesTheConfigOfASparseModel) {
  GgufFile file = keys("qwen35moe", {"expert_feed_forward_length"});
  file.zeros("blk.0.ffn_gate_exps.weight", {96, 24, 4}).zeros("output.weight", {96, 50});
  const Json config = gguf_qwen_config(*open(file));
  EXPECT_EQ(config["architectures"], Json::array({"Qwen3_5MoeForConditionalGeneration"}));
  EXPECT_EQ(config["tie_word_embeddings"], false);
  EXPECT_EQ(config["text_config"]["num_experts"], 4);
  EXPECT_EQ(config["text_config"]["num_experts_per_tok"], 2);
  EXPECT_EQ(config["text_config"]["moe_intermediate_size"], 24);
  EXPECT_EQ(config["text_config"]["shared_expert_intermediate_size"], 40);
}

TEST_F(GgufQwen, LayersFollowFromTheirKvHeadsOrTheirList) {
  GgufFile by_heads = keys("qwen35", {"attention.head_count_kv"});
  EXPECT_EQ(text_config(GgufFile(by_heads).integers("qwen35.attention.head_count_kv", {0, 2}))["layer_types"],
            Json::array({"linear_attention", "full_attention"}));
  EXPECT_EQ(text_config(GgufFile(by_heads).integers("qwen35.attention.head_count_kv", {0, 2}))["num_key_value_heads"],
            2);
  EXPECT_SAYS(config_error(GgufFile(by_heads).integers("qwen35.attention.head_count_kv", {3, 2})),
              "from block to block");
  EXPECT_SAYS(config_error(GgufFile(by_heads).integers("qwen35.attention.head_count_kv", {0, 2, 2})),
              "3 entries, expected 2");
  EXPECT_EQ(text_config(keys().integers("qwen35.attention.recurrent_layers", {0, 1}))["layer_types"],
            Json::array({"full_attention", "linear_attention"}));
}

TEST_F(GgufQwen, ReadsSectionsOfThreeAndFour) {
  for (const std::vector<std::int32_t>& sections : {std::vector{11, 11, 10}, std::vector{11, 11, 10, 0}}) {
    EXPECT_EQ(
        text_config(keys().integers("qwen35.rope.dimension_sections", sections))["rope_parameters"]["mrope_section"],
        Json::array({11, 11, 10}));
  }
  EXPECT_SAYS(config_error(keys().integers("qwen35.rope.dimension_sections", {1, 2, 3, 4})), "expected 3 sections");
}

TEST_F(GgufQwen, ASharePreservesTheNumberOfDimensions) {
  const std::vector<std::string> without{"attention.key_length", "rope.dimension_count"};
  for (const std::uint32_t head_dim : {48u, 80u, 96u, 176u, 256u}) {
    for (std::uint32_t dimensions = 2; dimensions <= head_dim; dimensions += 2) {
      GgufFile file = keys("qwen35", without);
      file.u32("qwen35.attention.key_length", head_dim).u32("qwen35.rope.dimension_count", dimensions);
      const double share = text_config(file)["rope_parameters"]["partial_rotary_factor"];
      EXPECT_EQ(static_cast<std::uint32_t>(head_dim * share), dimensions) << "of " << head_dim;
    }
  }
  GgufFile huge = keys("qwen35", without);
  huge.key("qwen35.attention.key_length", 10, test::raw(~std::uint64_t{0} >> 1));
  huge.key("qwen35.rope.dimension_count", 10, test::raw(~std::uint64_t{0} >> 1));
  EXPECT_EQ(text_config(huge)["rope_parameters"]["partial_rotary_factor"], 1.0);
}

TEST_F(GgufQwen, ReadsYarn) {
  GgufFile file = keys();
  file.text("qwen35.rope.scaling.type", "yarn").f32("qwen35.rope.scaling.factor", 4.0f);
  file.u32("qwen35.rope.scaling.original_context_length", 1024);
  const Json rope = text_config(file)["rope_parameters"];
  EXPECT_EQ(rope["rope_type"], "yarn");
  EXPECT_EQ(rope["factor"], 4.0);
  EXPECT_EQ(rope["original_max_position_embeddings"], 1024);
  EXPECT_SAYS(config_error(file.f32("qwen35.rope.scaling.yarn_ext_factor", 0.5f)), "yarn_ext_factor\" is 0.5");
}

TEST_F(GgufQwen, StopTokensAreTheUnionOfTheirKeys) {
  GgufFile file = keys();
  file.u32("tokenizer.ggml.eos_token_id", 7).u32("tokenizer.ggml.eot_token_id", 3);
  EXPECT_EQ(text_config(file.integers("tokenizer.ggml.eos_token_ids", {7, 5}))["eos_token_id"], Json::array({3, 5, 7}));
}

TEST_F(GgufQwen, NamesKeysThatAreMissingOrWrong) {
  for (const char* name : {"embedding_length", "attention.head_count", "attention.head_count_kv", "context_length",
                           "ssm.conv_kernel", "ssm.inner_size", "ssm.group_count", "feed_forward_length"}) {
    EXPECT_SAYS(config_error(keys("qwen35", {name})), std::string("\"qwen35.") + name + "\" is missing");
  }
  EXPECT_SAYS(config_error(keys().u32("qwen35.attention.value_length", 64)), "expected 48");
  EXPECT_SAYS(config_error(keys("qwen35", {"ssm.inner_size"}).u32("qwen35.ssm.inner_size", 191)), "not a multiple");
  EXPECT_SAYS(config_error(keys("llama")), "\"general.architecture\" is \"llama\"; supported are qwen35");
  EXPECT_SAYS(config_error(keys().u32("qwen35.nextn_predict_layers", 2)), "at least one of the model");
  EXPECT_SAYS(config_error(keys("qwen35", {"block_count"}).u32("qwen35.block_count", 1u << 30)), "expected 1 to");
  EXPECT_SAYS(config_error(GgufFile()), "has no \"general.architecture\"");
}

}  // namespace
}  // namespace sluice
