#include "weights/gguf_qwen_vision.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/mmap.h"
#include "support/gguf_file.h"
#include "support/temporary_directory.h"
#include "weights/joined_checkpoint.h"
#include "weights/safetensors.h"

namespace sluice {
namespace {

using test::GgufFile;
using test::message_of;
using test::TemporaryDirectory;

constexpr std::uint32_t type_f32 = 0, type_f16 = 1, type_bf16 = 30;

/// What a file says of a tower with rows of 4, one block, patches of 2 and 9 positions.
GgufFile keys(const std::string& projector = "qwen3vl_merger") {
  GgufFile file;
  file.text("general.architecture", "clip").text("clip.projector_type", projector);
  file.boolean("clip.has_vision_encoder", true).boolean("clip.use_gelu", true);
  file.u32("clip.vision.image_size", 6).u32("clip.vision.patch_size", 2).u32("clip.vision.embedding_length", 4);
  file.u32("clip.vision.feed_forward_length", 8).u32("clip.vision.block_count", 1);
  file.u32("clip.vision.attention.head_count", 2).u32("clip.vision.projection_dim", 6);
  return file;
}

GgufFile tower() {
  GgufFile file = keys();
  file.zeros("v.patch_embd.weight", {2, 2, 3, 4}).zeros("v.patch_embd.weight.1", {2, 2, 3, 4});
  file.zeros("v.position_embd.weight", {4, 9});
  return file;
}

class GgufVision : public testing::Test {
 protected:
  std::shared_ptr<const GgufCheckpoint> open(const GgufFile& file) {
    return std::make_shared<const GgufCheckpoint>(directory_.write("mmproj.gguf", file.bytes()));
  }
  std::string error(const GgufFile& file) {
    const auto opened = open(file);
    return message_of<LoadError>([&] { GgufQwenVision::of_mmproj(opened)->config(); });
  }

  void expect_published(bool bundled);

  TemporaryDirectory directory_;
};

/// llama.cpp's name of a published tensor, and for the patch embedding of its first slice.
std::string stored_name(std::string name) {
  const std::pair<const char*, const char*> parts[] = {{"model.visual.blocks.", "v.blk."},
                                                       {"model.visual.merger.norm", "v.post_ln"},
                                                       {"model.visual.merger.linear_fc1", "mm.0"},
                                                       {"model.visual.merger.linear_fc2", "mm.2"},
                                                       {"model.visual.pos_embed", "v.position_embd"},
                                                       {"model.visual.patch_embed.proj", "v.patch_embd"},
                                                       {".norm1.", ".ln1."},
                                                       {".norm2.", ".ln2."},
                                                       {".attn.qkv.", ".attn_qkv."},
                                                       {".attn.proj.", ".attn_out."},
                                                       {".mlp.linear_fc1.", ".ffn_up."},
                                                       {".mlp.linear_fc2.", ".ffn_down."}};
  for (const auto& [from, to] : parts) {
    if (const auto at = name.find(from); at != std::string::npos) name.replace(at, std::string(from).size(), to);
  }
  return name;
}

/// A tensor of a published checkpoint as a file is to hold it.
struct Published {
  Published(const Checkpoint& source, const std::string& name)
      : shape(source.find(name)->shape), dtype(source.find(name)->dtype) {
    const auto bytes = source.bytes(*source.find(name));
    data.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  std::uint32_t type() const { return dtype == DType::bf16 ? type_bf16 : type_f32; }
  std::vector<std::int64_t> sizes() const { return {shape.rbegin(), shape.rend()}; }

  std::vector<std::int64_t> shape;
  DType dtype;
  std::string data;
};

/// The vision tensors of a published checkpoint as llama.cpp's converter stores them.
GgufFile converted(const Checkpoint& source) {
  GgufFile file = keys();
  for (const std::string& name : source.names()) {
    if (!name.starts_with("model.visual.")) continue;
    const Published tensor(source, name);
    if (tensor.shape.size() != 5) {
      file.tensor(stored_name(name), tensor.sizes(), tensor.type(), tensor.data);
      continue;
    }
    const auto& s = tensor.shape;  // [hidden, channels, 2, height, width]
    const std::size_t plane = static_cast<std::size_t>(s[3] * s[4]) * size_of(tensor.dtype);
    std::string slices[2];
    for (std::size_t at = 0; at < tensor.data.size(); at += plane)
      slices[at / plane % 2] += tensor.data.substr(at, plane);
    file.tensor(stored_name(name), {s[4], s[3], s[1], s[0]}, tensor.type(), slices[0]);
    file.tensor(stored_name(name) + ".1", {s[4], s[3], s[1], s[0]}, tensor.type(), slices[1]);
  }
  return file;
}

/// The same as Ollama's converter stores them, beside the text.
GgufFile as_ollama(const Checkpoint& source) {
  GgufFile file;
  file.text("general.architecture", "qwen35").zeros("token_embd.weight", {4, 4});
  for (const std::string& name : source.names()) {
    if (!name.starts_with("model.visual.")) continue;
    const Published tensor(source, name);
    std::string stored = "v." + name.substr(std::string("model.visual.").size());
    const std::pair<const char*, const char*> parts[] = {
        {"patch_embed.proj", "patch_embed"}, {"blocks", "blk"}, {"attn.qkv", "attn_qkv"}, {"attn.proj", "attn_out"}};
    for (const auto& [from, to] : parts) {
      if (const auto at = stored.find(from); at != std::string::npos) stored.replace(at, std::string(from).size(), to);
    }
    std::vector<std::int64_t> sizes = tensor.sizes();
    if (sizes.size() == 5) sizes = {sizes[0], sizes[1], sizes[2], sizes[3] * sizes[4]};
    const auto at = stored.find("attn_qkv");
    if (at == std::string::npos) {
      file.tensor(stored, sizes, tensor.type(), tensor.data);
      continue;
    }
    sizes.back() /= 3;
    for (std::size_t i = 0; i < 3; ++i) {
      const std::string part = std::string("attn_") + "qkv"[i];
      file.tensor(std::string(stored).replace(at, 8, part), sizes, tensor.type(),
                  tensor.data.substr(i * tensor.data.size() / 3, tensor.data.size() / 3));
    }
  }
  return file;
}

void GgufVision::expect_published(bool bundled) {
  for (const char* folder : {"tests/data/golden/dense-ratio3", "models/tiny"}) {
    const auto published = open_safetensors(std::filesystem::path(SLUICE_SOURCE_DIR) / folder);
    const auto tower = bundled ? GgufQwenVision::of_text(open(as_ollama(*published)))
                               : GgufQwenVision::of_mmproj(open(converted(*published)));
    const GgufQwenVision& vision = *tower;
    std::size_t count = 0;
    for (const std::string& name : published->names()) {
      if (!name.starts_with("model.visual.")) continue;
      ++count;
      const StoredTensor& expected = *published->find(name);
      const StoredTensor* found = vision.find(name);
      ASSERT_NE(found, nullptr) << name;
      EXPECT_EQ(found->shape, expected.shape) << name;
      EXPECT_EQ(found->dtype, expected.dtype) << name;
      for (int time = 0; time < 2; ++time) {
        EXPECT_TRUE(std::ranges::equal(vision.bytes(*found), published->bytes(expected))) << name;
        vision.release(*found);
      }
    }
    EXPECT_GT(count, 20u);
    EXPECT_EQ(vision.names().size(), count);
  }
}

TEST_F(GgufVision, PresentsThePublishedTensorsOfAFileOfItsOwn) { expect_published(false); }
TEST_F(GgufVision, PresentsThePublishedTensorsThatLieBesideTheText) { expect_published(true); }

TEST_F(GgufVision, SizesThatATextFileDoesNotSayAreThoseOfItsTensors) {
  const std::filesystem::path folder = std::filesystem::path(SLUICE_SOURCE_DIR) / "tests/data/golden/dense-ratio3";
  GgufFile file = as_ollama(*open_safetensors(folder));
  file.u32("qwen35.vision.block_count", 2).u32("qwen35.vision.embedding_length", 72);
  file.u32("qwen35.vision.attention.head_count", 1).u32("qwen35.vision.patch_size", 16);
  const Json found = GgufQwenVision::of_text(open(file))->config();
  const Json published = parse_json(read_text_file(folder / "config.json"), "config.json")["vision_config"];
  for (const auto& [key, value] : found.items()) EXPECT_EQ(value, published[key]) << key;
  EXPECT_EQ(found.size(), 10u);
}

TEST_F(GgufVision, ATextFileNeedNotHaveATowerButAllOfIt) {
  const auto bundled = [&](const GgufFile& file) { return GgufQwenVision::of_text(open(file)); };
  GgufFile text;
  text.text("general.architecture", "qwen35").zeros("token_embd.weight", {4, 4});
  EXPECT_EQ(bundled(text), nullptr);
  text.zeros("v.patch_embed.weight", {2, 2, 2, 12}).zeros("v.blk.0.attn_q.weight", {4, 4});
  EXPECT_SAYS(message_of<LoadError>([&] { bundled(text); }), "\"v.blk.0.attn_k.weight\" is missing");
  GgufFile strange;
  strange.text("general.architecture", "qwen35").zeros("v.patch_embed.weight", {2, 2, 2, 13});
  EXPECT_SAYS(message_of<LoadError>([&] { bundled(strange); }), "[13, 2, 2, 2], expected float numbers");
  GgufFile unknown;
  unknown.text("general.architecture", "qwen35").zeros("v.patch_embed.weight", {2, 2, 2, 12}).zeros("v.other", {4});
  EXPECT_SAYS(message_of<LoadError>([&] { bundled(unknown); }), "\"v.other\" [4] is none of this family's");
}

TEST_F(GgufVision, SaysWhatTheConfigWould) {
  GgufFile file = tower();
  file.u32("clip.vision.spatial_merge_size", 3);
  const Json config = GgufQwenVision::of_mmproj(open(file))->config();
  const Json expected = {{"depth", 1},
                         {"hidden_size", 4},
                         {"intermediate_size", 8},
                         {"num_heads", 2},
                         {"out_hidden_size", 6},
                         {"in_channels", 3},
                         {"patch_size", 2},
                         {"temporal_patch_size", 2},
                         {"spatial_merge_size", 3},
                         {"num_position_embeddings", 9}};
  EXPECT_EQ(config, expected);
}

TEST_F(GgufVision, OtherFilesAreRefused) {
  EXPECT_SAYS(error(GgufFile().text("general.architecture", "qwen35")), "\"general.architecture\" is \"qwen35\"");
  EXPECT_SAYS(error(keys("qwen2.5vl_merger")),
              "\"clip.projector_type\" is \"qwen2.5vl_merger\", expected qwen3vl_merger");
  EXPECT_SAYS(error(GgufFile().text("general.architecture", "clip")), "\"missing\"");
  EXPECT_SAYS(error(tower().boolean("clip.has_audio_encoder", true)), "sound is not supported");
  EXPECT_SAYS(error(tower().f32("clip.vision.attention.layer_norm_epsilon", 1e-5f)), "layer_norm_epsilon");
  EXPECT_SAYS(error(tower().f32("clip.vision.attention.layer_norm_epsilon", std::nanf(""))), "layer_norm_epsilon");
  EXPECT_SAYS(error(tower().integers("clip.vision.is_deepstack_layers", {0, 1})), "deepstack is not supported");
  EXPECT_SAYS(error(tower().boolean("clip.use_silu", true)), "GELU");
}

TEST_F(GgufVision, TensorsThatAreMissingOrStrangeAreNamed) {
  GgufFile one = keys();
  one.zeros("v.patch_embd.weight", {2, 2, 3, 4}).zeros("v.position_embd.weight", {4, 9});
  EXPECT_SAYS(error(one), "\"v.patch_embd.weight.1\" is missing");
  GgufFile unlike = keys();
  unlike.zeros("v.patch_embd.weight", {2, 2, 3, 4}).zeros("v.patch_embd.weight.1", {2, 2, 3, 5});
  EXPECT_SAYS(error(unlike), "[5, 3, 2, 2], expected float32 [4, 3, 2, 2]");
  GgufFile types = keys();
  types.zeros("v.patch_embd.weight", {2, 2, 3, 4});
  types.tensor("v.patch_embd.weight.1", {2, 2, 3, 4}, type_f16, std::string(96, '\0'));
  EXPECT_SAYS(error(types), "is float16");
  GgufFile flat = keys();
  flat.zeros("v.patch_embd.weight", {12, 4}).zeros("v.patch_embd.weight.1", {12, 4});
  EXPECT_SAYS(error(flat), "expected float numbers [hidden, channels, height, width]");
  GgufFile without_positions = keys();
  without_positions.zeros("v.patch_embd.weight", {2, 2, 3, 4}).zeros("v.patch_embd.weight.1", {2, 2, 3, 4});
  EXPECT_SAYS(error(without_positions), "lacks pos_embed.weight");
  EXPECT_SAYS(error(tower().zeros("v.deepstack.5.fc1.weight", {4})), "deepstack is not supported");
  for (const char* name : {"mm.1.weight", "v.blk.0.ls1.weight", "v.blk.00.ln1.weight", "v.blk.0.ln1", "v.class_embd"}) {
    EXPECT_SAYS(error(tower().zeros(name, {4})), name);
  }
}

TEST_F(GgufVision, SizesThatDoNotFitEachOtherAreRefused) {
  GgufFile file = tower();
  EXPECT_EQ(error(file), "");
  GgufFile positions = keys();
  positions.zeros("v.patch_embd.weight", {2, 2, 3, 4}).zeros("v.patch_embd.weight.1", {2, 2, 3, 4});
  positions.zeros("v.position_embd.weight", {4, 8});
  EXPECT_SAYS(error(positions), "does not fit the 8 positions");
}

TEST_F(GgufVision, TwoCheckpointsAreOne) {
  const auto second = [&] { return GgufQwenVision::of_mmproj(open(tower())); };
  const TemporaryDirectory other;
  const auto text = [&] {
    const auto path = other.write("text.gguf", GgufFile().zeros("a", {4}).bytes());
    return std::make_unique<GgufCheckpoint>(path);
  };
  const JoinedCheckpoint joined(text(), second());
  EXPECT_EQ(joined.names(),
            (std::vector<std::string>{"a", "model.visual.patch_embed.proj.weight", "model.visual.pos_embed.weight"}));
  EXPECT_EQ(joined.total_bytes(), 16u + 2u * 48u * 4u + 36u * 4u);
  EXPECT_EQ(joined.bytes(*joined.find("model.visual.patch_embed.proj.weight")).size(), 2u * 48u * 4u);
  EXPECT_EQ(joined.bytes(*joined.find("a")).size(), 16u);
  EXPECT_SAYS(message_of<LoadError>([&] { JoinedCheckpoint(second(), second()); }), "is in");
}

}  // namespace
}  // namespace sluice
