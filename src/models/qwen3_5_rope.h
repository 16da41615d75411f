#pragma once
#include <cstdint>
#include <vector>

#include "models/qwen3_5_config.h"

namespace sluice {

/// One inverse frequency and one axis (0 time, 1 height, 2 width) for each pair of rotated dimensions.
struct RopeTable {
  std::vector<float> inverse_frequencies;
  std::vector<std::int32_t> axes;
  float scale = 1.0f;
};

/// theta^(-2i/d), by YaRN stretched (Peng et al., arXiv 2309.00071, as transformers' _compute_yarn_parameters reads
/// it); axes by multi-axis RoPE, interleaved i mod 3 or in sections.
RopeTable make_rope_table(const Qwen3_5RopeConfig& config, std::int64_t frequencies);

}  // namespace sluice
