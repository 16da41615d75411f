#pragma once
#include "models/qwen3_5_config.h"
#include "weights/scope.h"

namespace sluice {

/// Checks that the vision tower under `scope` has exactly the tensors that the config describes, and claims them.
void reserve_vision_tower(const WeightScope& scope, const Qwen3_5VisionConfig& config);

}  // namespace sluice
