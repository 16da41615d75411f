// Lists of modules in configs, as the writers of quantized checkpoints fill them, against the types of tensors.
#include "weights/formats/listed_modules.h"

#include <chrono>

#include <gtest/gtest.h>

#include "support/memory_checkpoint.h"

namespace sluice::test {
namespace {

void add(MemoryCheckpoint& to, const std::string& name, DType dtype, std::vector<std::int64_t> shape = {2, 2}) {
  std::int64_t elements = 1;
  for (const std::int64_t size : shape) elements *= size;
  to.add(name, dtype, shape, std::vector<std::byte>(static_cast<std::size_t>(elements) * size_of(dtype)));
}

/// Two layers with quantized MLPs, plain attention, and what is never quantized.
MemoryCheckpoint checkpoint(const std::string& prefix = "model.language_model.") {
  MemoryCheckpoint made;
  for (const char* layer : {"layers.0.", "layers.11."}) {
    for (const char* name : {"gate_proj", "up_proj", "down_proj"}) {
      add(made, prefix + layer + "mlp." + name + ".weight", DType::f8_e4m3);
      add(made, prefix + layer + "mlp." + name + ".weight_scale", DType::f32, {2, 1});
    }
    for (const char* name : {"self_attn.q_proj", "self_attn.k_proj"}) {
      add(made, prefix + layer + name + ".weight", DType::bf16);
    }
    add(made, prefix + layer + "input_layernorm.weight", DType::bf16, {2});
    add(made, prefix + layer + "mlp.gate.weight", DType::bf16);
  }
  add(made, prefix + "embed_tokens.weight", DType::bf16);
  add(made, "lm_head.weight", DType::bf16);
  add(made, "mtp.fc.weight", DType::bf16);
  add(made, "model.visual.blocks.0.attn.qkv.weight", DType::bf16);
  return made;
}

std::string summary_of(const char* config, const MemoryCheckpoint& of = checkpoint()) {
  return quantization_differences(Json::parse(config), of).summary();
}

TEST(ListedModules, ListsOfEveryWriterAgreeWithTheTensors) {
  for (const char* config : {
           R"({"quant_method": "fp8", "modules_to_not_convert": ["model.layers.0.self_attn.q_proj",
               "model.language_model.layers.0.self_attn.k_proj", "language_model.model.layers.11.self_attn",
               "mtp.fc", "model.visual"]})",
           R"({"ignore": ["re:.*self_attn.*", "re:.*visual\\.blocks.*", "re:^mtp\\..*", "lm_head"]})",
           R"({"ignore": ["re:model\\.layers\\.\\d+\\.self_attn\\.(q|k)_proj$", "re:visual.*", "re:model.visual.*",
               "mtp.fc"]})",
           R"({"exclude_modules": ["*self_attn*", "*visual*", "mtp*", "lm_head"]})",
           R"({"quant_method": "modelopt", "exclude_modules": ["model.layers.0.self_attn*", "*.11.self_attn*",
               "model.visual*", "mtp*"]})",
           R"({"quant_method": "gptq", "dynamic": {"-:.*self_attn.*": {}, "+:.*mlp.*": {"bits": 8}}})",
           R"({"quant_method": "gptq", "modules_in_block_to_quantize": [["mlp.gate_proj", "mlp.up_proj"],
               ["mlp.down_proj"]]})",
           R"({"quantized_layers": {"model.language_model.layers.0.mlp.gate_proj": {"quant_algo": "FP8"},
               "model.layers.0.mlp.up_proj": {}, "layers.0.mlp.down_proj": {}, "*layers.11.mlp*": {}}})",
           R"({"config_groups": {"a": {"targets": ["re:.*mlp.*_proj"]}}})",
           R"({"config_groups": {"a": {"targets": ["Linear"]}}, "ignore": ["re:.*qkv_proj", "re:.*visual.*", "re:mtp.*",
               "model.layers.0.self_attn", "model.layers.11.self_attn"]})",
       }) {
    EXPECT_EQ(summary_of(config), "") << config;
    EXPECT_EQ(summary_of(config, checkpoint("model.")), "") << config;
    EXPECT_EQ(summary_of(config, checkpoint("language_model.model.")), "") << config;
  }
}

TEST(ListedModules, DifferencesAreSummedUp) {
  EXPECT_EQ(summary_of(R"({"ignore": ["re:.*self_attn.*", "visual", "re:.*mlp\\.(gate|up)_proj"]})"),
            "model.language_model.layers.*.mlp.gate_proj (2) is stored as float8_e4m3 and listed as not quantized, "
            "model.language_model.layers.*.mlp.up_proj (2) is stored as float8_e4m3 and listed as not quantized, "
            "mtp.fc (1) is stored as bfloat16 and listed as quantized");
  EXPECT_EQ(summary_of(R"({"ignore": ["mtp", "visual", "model.language_model.layers.0.self_attn"]})"),
            "model.language_model.layers.*.self_attn.k_proj (1) is stored as bfloat16 and listed as quantized, "
            "model.language_model.layers.*.self_attn.q_proj (1) is stored as bfloat16 and listed as quantized");
  EXPECT_EQ(summary_of(R"({"quant_method": "awq", "modules_to_not_convert": ["self_attn", "mlp"]})").substr(0, 50),
            "model.language_model.layers.*.mlp.down_proj (2) is");
}

/// "mlp.gate" is the router and not mlp.gate_proj.
TEST(ListedModules, NamesAreWholeOnes) {
  EXPECT_EQ(summary_of(R"({"ignore": ["mlp.gate", "self_attn", "mtp", "visual"]})"), "");
}

TEST(ListedModules, FusedMatricesAreTheirParts) {
  MemoryCheckpoint fused;
  add(fused, "model.layers.0.mlp.gate_up_proj.weight", DType::bf16);
  add(fused, "model.layers.0.mlp.experts.gate_up_proj", DType::bf16, {3, 2, 2});
  add(fused, "model.layers.0.mlp.experts.down_proj_packed", DType::u8, {3, 2, 2});
  const char* parts = R"({"ignore": ["re:.*gate_proj", "re:.*up_proj$"]})";
  EXPECT_EQ(summary_of(parts, fused), "");
  EXPECT_EQ(summary_of(R"({"ignore": ["re:.*gate_proj"]})", fused).substr(0, 47),
            "model.layers.*.mlp.experts.gate_up_proj (1) is ");
  EXPECT_EQ(summary_of(R"({"ignore": ["re:.*gate_up_proj", "experts"]})", fused),
            "model.layers.*.mlp.experts.down_proj (1) is stored as uint8 and listed as not quantized");
}

TEST(ListedModules, WhatIsNotUnderstoodIsNamedAndNotGuessed) {
  const auto differences = quantization_differences(
      Json::parse(R"({"ignore": ["re:(?!mtp).*", "self_attn", "mtp", "visual"]})"), checkpoint());
  EXPECT_TRUE(differences.modules.empty());
  EXPECT_EQ(differences.not_understood, std::vector<std::string>{"re:(?!mtp).*"});
  EXPECT_EQ(differences.summary(), "not understood: \"re:(?!mtp).*\"");
}

TEST(ListedModules, PatternsCannotTakeLong) {
  const std::string slow = "re:.*(a+)+(a*a*)*(mlp|self_attn|mtp|visual){0,200}.{0,200}$";
  Json config = {{"ignore", Json::array()}};
  for (int i = 0; i < 200; ++i) config["ignore"].push_back(slow + std::to_string(i));
  MemoryCheckpoint made = checkpoint();
  add(made, std::string(100000, 'a') + ".weight", DType::bf16);
  const auto start = std::chrono::steady_clock::now();
  EXPECT_FALSE(quantization_differences(config, made).empty());
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
}

TEST(ListedModules, AnyJsonIsTaken) {
  for (
      const char* config :
      {"null", "3", "[]", "{}", R"({"ignore": 3, "dynamic": [], "config_groups": {"a": 1, "b": {"targets": [[""]]}}})",
       R"({"ignore": [[[[[[[["x"]]]]]]]], "quantized_layers": null, "quant_method": {}, "exclude": ["", "re:", "*"]})"}) {
    quantization_differences(Json::parse(config), checkpoint());
  }
}

}  // namespace
}  // namespace sluice::test
