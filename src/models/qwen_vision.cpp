#include "models/qwen_vision.h"

namespace sluice {

namespace {

void reserve_affine(const WeightScope& scope, std::string_view name, const std::vector<std::int64_t>& weight) {
  scope.reserve(fmt::format("{}.weight", name), weight);
  scope.reserve(fmt::format("{}.bias", name), {weight[0]});
}

void reserve_block(const WeightScope& block, std::int64_t hidden, std::int64_t intermediate) {
  reserve_affine(block, "norm1", {hidden});
  reserve_affine(block, "norm2", {hidden});
  reserve_affine(block, "attn.qkv", {3 * hidden, hidden});
  reserve_affine(block, "attn.proj", {hidden, hidden});
  reserve_affine(block, "mlp.linear_fc1", {intermediate, hidden});
  reserve_affine(block, "mlp.linear_fc2", {hidden, intermediate});
}

}  // namespace

void reserve_vision_tower(const WeightScope& scope, const Qwen3_5VisionConfig& config) {
  const std::int64_t hidden = config.hidden_size;
  const std::int64_t merged = hidden * config.spatial_merge_size * config.spatial_merge_size;
  scope.reserve("patch_embed.proj.weight",
                {hidden, config.in_channels, config.temporal_patch_size, config.patch_size, config.patch_size});
  scope.reserve("patch_embed.proj.bias", {hidden});
  scope.reserve("pos_embed.weight", {config.position_embeddings, hidden});
  for (std::int64_t i = 0; i < config.depth; ++i) {
    reserve_block(scope.at(fmt::format("blocks.{}", i)), hidden, config.intermediate_size);
  }
  reserve_affine(scope, "merger.norm", {hidden});
  reserve_affine(scope, "merger.linear_fc1", {merged, merged});
  reserve_affine(scope, "merger.linear_fc2", {config.out_hidden_size, merged});
}

}  // namespace sluice
