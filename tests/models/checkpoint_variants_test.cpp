// Checkpoints of the same model under other names, layouts and types must give the same logits, bit for bit.
#include <gtest/gtest.h>

#include "support/golden.h"
#include "support/rewrite_checkpoint.h"
#include "support/temporary_directory.h"

namespace sluice::test {
namespace {

std::filesystem::path golden_dir(const std::string& name) { return source_dir() / "tests/data/golden" / name; }

Rows logits_of(const std::filesystem::path& directory) {
  const Golden golden(golden_dir("dense-ratio3") / "expected.safetensors");
  return ModelRunner(directory, reference_options).run(golden.ids("ids.65")).logits;
}

void expect_same(
    const std::string& source, const Rewrite& rewrite, const std::function<void(Json&)>& change_config = [](Json&) {}) {
  const TemporaryDirectory directory;
  rewrite_checkpoint(golden_dir(source), directory.path(), rewrite, change_config);
  EXPECT_EQ(logits_of(directory.path()), logits_of(golden_dir(source)));
}

std::string replaced(const std::string& text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  return at == std::string::npos ? text : text.substr(0, at) + to + text.substr(at + from.size());
}

void flatten(Json& config, const char* architecture) {
  Json flat = config["text_config"];
  flat["architectures"] = {architecture};
  flat["tie_word_embeddings"] = config["tie_word_embeddings"];
  config = flat;
}

TEST(CheckpointVariants, TextOnlyNamesWithAFlatConfig) {
  const Rewrite rename = [](NamedTensor tensor) -> std::vector<NamedTensor> {
    if (tensor.name.starts_with("mtp.")) return {};
    tensor.name = replaced(tensor.name, "model.language_model.", "model.");
    return {tensor};
  };
  expect_same("dense-ratio3", rename, [](Json& config) { flatten(config, "Qwen3_5ForCausalLM"); });
  expect_same("moe-ratio2", rename, [](Json& config) { flatten(config, "Qwen3_5MoeForCausalLM"); });
}

TEST(CheckpointVariants, NamesThatBeginWithLanguageModel) {
  expect_same("dense-ratio3", [](NamedTensor tensor) -> std::vector<NamedTensor> {
    tensor.name = replaced(tensor.name, "model.language_model.", "language_model.model.");
    if (tensor.name == "lm_head.weight") tensor.name = "language_model.lm_head.weight";
    return {tensor};
  });
}

TEST(CheckpointVariants, ExpertsUnderTheirOwnNames) {
  expect_same("moe-ratio2", [](NamedTensor tensor) -> std::vector<NamedTensor> {
    const auto at = tensor.name.find("experts.gate_up_proj");
    const auto down = tensor.name.find("experts.down_proj");
    std::vector<NamedTensor> parts;
    for (std::int64_t e = 0; at != std::string::npos && e < tensor.shape[0]; ++e) {
      const std::string base = tensor.name.substr(0, at) + "experts." + std::to_string(e) + ".";
      const NamedTensor both = tensor.rows("", e, 0);
      parts.push_back(both.rows(base + "gate_proj.weight", 0, both.shape[0] / 2));
      parts.push_back(both.rows(base + "up_proj.weight", both.shape[0] / 2, both.shape[0] / 2));
    }
    for (std::int64_t e = 0; down != std::string::npos && e < tensor.shape[0]; ++e) {
      parts.push_back(
          tensor.rows(tensor.name.substr(0, down) + "experts." + std::to_string(e) + ".down_proj.weight", e, 0));
    }
    if (parts.empty()) parts.push_back(std::move(tensor));
    return parts;
  });
}

TEST(CheckpointVariants, PackedProjectionsTakenApart) {
  const Json text = read_config(golden_dir("dense-packed"))["text_config"];
  const std::int64_t key = text["linear_num_key_heads"].get<std::int64_t>() * 128;
  const std::int64_t heads = text["linear_num_value_heads"].get<std::int64_t>();
  expect_same("dense-packed", [&](NamedTensor tensor) -> std::vector<NamedTensor> {
    const auto named = [&](const char* name) {
      return replaced(replaced(tensor.name, "in_proj_qkvz", name), "in_proj_ba", name);
    };
    if (tensor.name.find("in_proj_qkvz") != std::string::npos) {
      const std::int64_t channels = 2 * key + heads * 128;
      return {tensor.rows(named("in_proj_qkv"), 0, channels), tensor.rows(named("in_proj_z"), channels, heads * 128)};
    }
    if (tensor.name.find("in_proj_ba") != std::string::npos) {
      return {tensor.rows(named("in_proj_b"), 0, heads), tensor.rows(named("in_proj_a"), heads, heads)};
    }
    return {tensor};
  });
}

TEST(CheckpointVariants, TheSameNumbersInFloat32) {
  expect_same("dense-ratio3", [](NamedTensor tensor) -> std::vector<NamedTensor> {
    std::vector<float> wide(tensor.bytes.size() / 2);
    to_float(DType::bf16, tensor.bytes.data(), wide.size(), wide.data());
    tensor.dtype = DType::f32;
    tensor.bytes.resize(wide.size() * sizeof(float));
    std::memcpy(tensor.bytes.data(), wide.data(), tensor.bytes.size());
    return {tensor};
  });
}

/// Rounds the values of a bf16 tensor to 11 significant bits within float16's range: exact in either type.
std::vector<std::uint16_t> as_f16(NamedTensor& tensor) {
  std::vector<std::uint16_t> half(tensor.bytes.size() / 2);
  for (std::size_t i = 0; i < half.size(); ++i) {
    half[i] = float_to_f16(load_float(tensor.dtype, tensor.bytes.data(), i));
    const std::uint16_t back = float_to_bf16(f16_to_float(half[i]));
    half[i] = float_to_f16(bf16_to_float(back));
    std::memcpy(tensor.bytes.data() + 2 * i, &back, 2);
  }
  return half;
}

TEST(CheckpointVariants, TheSameNumbersInFloat16) {
  const TemporaryDirectory bf16, f16;
  auto rewrite_to = [&](const TemporaryDirectory& target, bool half) {
    rewrite_checkpoint(
        golden_dir("dense-ratio3"), target.path(),
        [half](NamedTensor tensor) -> std::vector<NamedTensor> {
          const auto values = as_f16(tensor);
          for (std::size_t i = 0; i < values.size(); ++i) {
            const std::uint16_t wide = float_to_bf16(f16_to_float(values[i]));
            std::memcpy(tensor.bytes.data() + 2 * i, half ? &values[i] : &wide, 2);
          }
          if (half) tensor.dtype = DType::f16;
          return {tensor};
        },
        [](Json&) {});
  };
  rewrite_to(bf16, false);
  rewrite_to(f16, true);
  EXPECT_LT(relative_error(logits_of(f16.path()), logits_of(bf16.path())), 1e-6);
}

TEST(CheckpointVariants, ATiedHeadThatIsStoredAgain) {
  const TemporaryDirectory tied, doubled;
  auto tie = [](Json& config) { config["tie_word_embeddings"] = true; };
  rewrite_checkpoint(
      golden_dir("dense-ratio3"), tied.path(),
      [](NamedTensor tensor) -> std::vector<NamedTensor> {
        if (tensor.name == "lm_head.weight") return {};
        return {tensor};
      },
      tie);
  rewrite_checkpoint(
      golden_dir("dense-ratio3"), doubled.path(),
      [](NamedTensor tensor) -> std::vector<NamedTensor> {
        if (tensor.name == "lm_head.weight") return {};
        if (tensor.name != "model.language_model.embed_tokens.weight") return {tensor};
        NamedTensor head = tensor;
        head.name = "lm_head.weight";
        return {tensor, head};
      },
      tie);
  EXPECT_EQ(logits_of(doubled.path()), logits_of(tied.path()));
  EXPECT_GT(relative_error(logits_of(tied.path()), logits_of(golden_dir("dense-ratio3"))), 0.1);
}

TEST(CheckpointVariants, LayerTypesByIntervalInsteadOfAList) {
  expect_same("dense-ratio3", unchanged, [](Json& config) {
    config["text_config"].erase("layer_types");
    config["text_config"]["full_attention_interval"] = 4;
  });
}

}  // namespace
}  // namespace sluice::test
