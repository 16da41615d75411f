#pragma once
#include <array>
#include <optional>
#include <string_view>

#include "weights/scope.h"

namespace sluice {

/// The prefixes that published and community checkpoints use for the parts of a model, and a matrix that each has.
struct Qwen3_5Part {
  std::array<std::string_view, 3> prefixes;
  std::size_t count;
  std::string_view member;
};
inline constexpr Qwen3_5Part text_part{{"model.language_model", "model", "language_model.model"}, 3, "embed_tokens"};
inline constexpr Qwen3_5Part head_part{{"", "language_model", ""}, 2, "lm_head"};
inline constexpr Qwen3_5Part draft_part{{"mtp", "language_model.mtp", ""}, 2, "fc"};
inline constexpr Qwen3_5Part vision_part{{"model.visual", "visual", "vision_tower"}, 3, "patch_embed.proj"};

/// Scales of an attention layer for an 8-bit KV cache, which are passed over.
inline constexpr std::array<std::string_view, 4> kv_scales{"k_scale", "v_scale", "k_proj.k_scale", "v_proj.v_scale"};

/// The part under the first of its prefixes that the checkpoint has; none if it has none.
std::optional<WeightScope> find_part(const WeightScope& root, const Qwen3_5Part& part);
/// The same for the text. Throws LoadError where there is none.
WeightScope require_text(const WeightScope& root);

}  // namespace sluice
