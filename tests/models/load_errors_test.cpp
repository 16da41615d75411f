// Checkpoints and configs that do not fit are refused with one message that names what is wrong.
#include <gtest/gtest.h>

#include "base/error.h"
#include "support/golden.h"
#include "support/rewrite_checkpoint.h"
#include "support/temporary_directory.h"

namespace sluice::test {
namespace {

std::string error_with(const Rewrite& rewrite, const std::function<void(Json&)>& change_config = [](Json&) {}) {
  const TemporaryDirectory directory;
  rewrite_checkpoint(dense_golden(), directory.path(), rewrite, change_config);
  return message_of<LoadError>([&] { ModelRunner(directory.path(), reference_options); });
}

/// Of the checkpoint in blocks of 8-bit floats.
std::string quantized_error(const Rewrite& rewrite) {
  const TemporaryDirectory directory;
  rewrite_checkpoint(source_dir() / "tests/data/golden/dense-ratio3-fp8-block", directory.path(), rewrite,
                     [](Json&) {});
  return message_of<LoadError>([&] { ModelRunner(directory.path(), reference_options); });
}

std::string config_error(const std::function<void(Json& text)>& change) {
  return error_with(unchanged, [&](Json& config) { change(config["text_config"]); });
}

TEST(LoadErrors, ARewrittenCheckpointLoads) { EXPECT_EQ(error_with(unchanged), ""); }

TEST(LoadErrors, NameTheTensorThatIsMissing) {
  for (const char* name : {"model.language_model.layers.1.linear_attn.A_log", "lm_head.weight", "mtp.norm.weight",
                           "model.language_model.layers.3.self_attn.k_proj.weight", "model.language_model.norm.weight",
                           "model.language_model.embed_tokens.weight"}) {
    EXPECT_SAYS(error_with([&](NamedTensor tensor) -> std::vector<NamedTensor> {
                  if (tensor.name == name) return {};
                  return {tensor};
                }),
                name);
  }
}

TEST(LoadErrors, NameTheTensorThatNobodyKnows) {
  EXPECT_SAYS(error_with([](NamedTensor tensor) -> std::vector<NamedTensor> {
                if (tensor.name != "lm_head.weight") return {tensor};
                NamedTensor extra = tensor;
                extra.name = "model.language_model.layers.0.self_attn.q_proj.weight";
                return {tensor, extra};
              }),
              "model.language_model.layers.0.self_attn.q_proj.weight");
}

TEST(LoadErrors, NameTheShapeThatWasExpected) {
  EXPECT_SAYS(error_with([](NamedTensor tensor) -> std::vector<NamedTensor> {
                if (tensor.name == "model.language_model.layers.0.linear_attn.out_proj.weight") {
                  std::swap(tensor.shape[0], tensor.shape[1]);
                }
                return {tensor};
              }),
              "has shape [384, 64], expected [64, 384]");
  EXPECT_SAYS(error_with([](NamedTensor tensor) -> std::vector<NamedTensor> {
                if (tensor.name == "model.language_model.norm.weight") return {tensor.rows(tensor.name, 0, 63)};
                return {tensor};
              }),
              "has shape [63], expected [64]");
}

TEST(LoadErrors, NameATypeWithoutItsScales) {
  EXPECT_SAYS(error_with([](NamedTensor tensor) -> std::vector<NamedTensor> {
                if (tensor.name == "model.language_model.layers.0.mlp.up_proj.weight") {
                  tensor.dtype = DType::i32;
                  tensor.shape[1] /= 2;
                }
                return {tensor};
              }),
              "up_proj.weight\" is int32");
}

TEST(LoadErrors, NameAScaleThatIsMissingAndAScaleOfNothing) {
  const std::string scale = "model.language_model.layers.0.mlp.up_proj.weight_scale_inv";
  EXPECT_EQ(quantized_error(unchanged), "");
  EXPECT_SAYS(quantized_error([&](NamedTensor tensor) -> std::vector<NamedTensor> {
                if (tensor.name == scale) return {};
                return {tensor};
              }),
              "up_proj.weight\" is float8_e4m3");
  EXPECT_SAYS(quantized_error([&](NamedTensor tensor) -> std::vector<NamedTensor> {
                if (tensor.name != scale) return {tensor};
                NamedTensor extra = tensor;
                extra.name = "model.language_model.layers.0.linear_attn.in_proj_a.weight_scale_inv";
                return {tensor, extra};
              }),
              "1 tensor that this architecture does not have: "
              "\"model.language_model.layers.0.linear_attn.in_proj_a.weight_scale_inv\"");
}

TEST(LoadErrors, ScalesOfAnEightBitCacheAreNone) {
  EXPECT_EQ(quantized_error([](NamedTensor tensor) -> std::vector<NamedTensor> {
              if (tensor.name != "model.language_model.layers.3.self_attn.k_norm.weight") return {tensor};
              NamedTensor k = tensor.rows("model.language_model.layers.3.self_attn.k_proj.k_scale", 0, 1), v = k;
              v.name = "model.language_model.layers.3.self_attn.v_scale";
              return {tensor, k, v};
            }),
            "");
}

TEST(LoadErrors, RefuseATiedHeadThatDiffers) {
  EXPECT_SAYS(error_with(unchanged, [](Json& config) { config["tie_word_embeddings"] = true; }), "tie_word_embeddings");
}

TEST(LoadErrors, RefuseOtherArchitectures) {
  EXPECT_SAYS(error_with(unchanged, [](Json& config) { config["architectures"] = {"Qwen4ExpForCausalLM"}; }),
              "Qwen4ExpForCausalLM");
  EXPECT_SAYS(error_with(unchanged, [](Json& config) { config.erase("architectures"); }), "architectures");
}

TEST(LoadErrors, RefuseWhatTheTensorsOfAQuantizationCannotTell) {
  EXPECT_SAYS(
      error_with(unchanged,
                 [](Json& config) { config["quantization_config"] = {{"quant_method", "awq"}, {"version", "gemv"}}; }),
      "version is \"gemv\"");
}

TEST(LoadErrors, RefuseUnsupportedFieldsByName) {
  const std::vector<std::pair<std::string, Json>> changes{
      {"hidden_act", "gelu"},
      {"mamba_ssm_dtype", "int8"},
      {"output_gate_type", "tanh"},
      {"mtp_num_hidden_layers", 2},
      {"mtp_use_dedicated_embeddings", true},
      {"layer_types", {"linear_attention"}},
      {"layer_types", {"linear_attention", "sliding_attention", "linear_attention", "full_attention"}},
      {"hidden_size", "64"},
      {"hidden_size", -64},
      {"hidden_size", 1e300},
      {"num_hidden_layers", 1000000},
      {"vocab_size", nullptr},
      {"num_attention_heads", 0},
      {"num_key_value_heads", 2},
      {"linear_num_value_heads", 0},
      {"linear_key_head_dim", 100},
      {"rms_norm_eps", "small"},
  };
  for (const auto& [key, value] : changes) {
    EXPECT_SAYS(config_error([&](Json& text) { text[key] = value; }), key) << value;
  }
}

TEST(LoadErrors, RefuseRopeTypesByName) {
  EXPECT_SAYS(config_error([](Json& text) { text["rope_parameters"]["rope_type"] = "llama3"; }), "llama3");
  EXPECT_SAYS(config_error([](Json& text) { text["rope_parameters"]["rope_type"] = "yarn"; }), "factor");
  EXPECT_SAYS(config_error([](Json& text) { text["rope_parameters"]["mrope_section"] = {11, 11, 11}; }),
              "mrope_section");
  EXPECT_SAYS(config_error([](Json& text) { text["rope_parameters"]["mrope_section"] = {16, 16}; }), "mrope_section");
  EXPECT_SAYS(config_error([](Json& text) { text["rope_parameters"] = 3; }), "rope_parameters");
}

TEST(Config, ListsKeysThatNobodyKnows) {
  Json config = read_config(dense_golden());
  EXPECT_EQ(unknown_config_keys(config), std::vector<std::string>{});
  config["new_thing"] = 1;
  config["text_config"]["sliding_window"] = 4096;
  config["text_config"]["rope_parameters"]["low_freq_factor"] = 1;
  config["vision_config"]["depth_scale"] = 2;
  EXPECT_EQ(unknown_config_keys(config),
            (std::vector<std::string>{"new_thing", "text_config.sliding_window",
                                      "text_config.rope_parameters.low_freq_factor", "vision_config.depth_scale"}));
}

TEST(Config, KeepsAVisionTowerThatTheCheckpointHas) {
  EXPECT_EQ(ModelRunner(dense_golden(), reference_options).model().info().image_token, 310);
}

TEST(Config, RefusesAVisionTowerOfAnotherShape) {
  const auto checkpoint = open_safetensors(dense_golden());
  const auto ops = make_cpu_backend(reference_options);
  Json config = read_config(dense_golden());
  config["vision_config"]["depth"] = 3;
  EXPECT_SAYS(message_of<LoadError>([&] { load_model(config, *checkpoint, *ops); }), "model.visual.blocks.2");
  config["vision_config"]["depth"] = 1;
  EXPECT_SAYS(message_of<LoadError>([&] { load_model(config, *checkpoint, *ops); }), "model.visual.blocks.1");
  config.erase("vision_config");
  EXPECT_SAYS(message_of<LoadError>([&] { load_model(config, *checkpoint, *ops); }), "model.visual.");
}

}  // namespace
}  // namespace sluice::test
