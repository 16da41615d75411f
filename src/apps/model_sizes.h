#pragma once
#include <cstdint>

#include "models/qwen3_5_config.h"
#include "ops/views.h"

namespace sluice {

/// What a config's model needs of the caches, known before any weight is loaded.
CacheNeeds cache_needs_of(const Qwen3_5Config& config, bool has_draft_head);

/// Parameters and arithmetic of the text model, from the shapes of model.md 1.5. Without embedding and draft head.
struct ModelSizes {
  double dense_parameters = 0;  // of matrices that every token multiplies, head not included
  double head_parameters = 0;
  double expert_parameters = 0;  // of one routed expert of one layer
  double expert_layers = 0, experts = 0, experts_per_token = 0;
  double attention_per_position = 0;  // operations of one query row with one cached position, all layers
  double delta_per_token = 0;         // operations of the delta rule for one token, all layers
  double state_bytes = 0;             // of one sequence, float32

  /// Operations of the matrix products of one token, without the head.
  double product_operations() const {
    return 2.0 * (dense_parameters + expert_layers * experts_per_token * expert_parameters);
  }
  /// Experts of a layer that a step of this many tokens reads, if routing is uniform.
  double experts_read(double tokens) const;
};
ModelSizes model_sizes(const Qwen3_5Config& config);

}  // namespace sluice
