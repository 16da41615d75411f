#pragma once
#include <algorithm>
#include <bit>

#include "tensor/dtype.h"
#include "weights/ggml/blocks.h"

namespace sluice::ggml {

/// The nearest float16; what is too large becomes the largest finite one.
inline Half to_scale(float value) { return float_to_f16(std::clamp(value, -65504.0f, 65504.0f)); }

/// The nearest whole number from `low` to `high`, ties to even.
inline int to_code(float value, int low, int high) {
  // The sum has no room for a fraction: the processor rounds, and the low bits are the number.
  constexpr float shift = 12582912.0f;  // 1.5 * 2^23
  const float sum = std::clamp(value, static_cast<float>(low), static_cast<float>(high)) + shift;
  return std::bit_cast<int>(sum) - std::bit_cast<int>(shift);
}

}  // namespace sluice::ggml
