#include "weights/ggml/quantize.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/check.h"
#include "weights/ggml/rounding.h"

namespace sluice {
namespace ggml {
namespace {

/// The first of 32 values whose magnitude is the largest.
float extreme(const float* values) {
  float found = 0.0f;
  for (int i = 0; i < 32; ++i) {
    if (std::fabs(values[i]) > std::fabs(found)) found = values[i];
  }
  return found;
}

/// 0 where there is no finite one; such scales are 0 in float16.
float inverse(float scale) {
  const float inverse = 1.0f / scale;
  return std::isfinite(inverse) ? inverse : 0.0f;
}

}  // namespace

void quantize(const float* values, Q4_0& block) {
  const float d = extreme(values) / -8.0f;
  const float factor = inverse(d);
  auto code = [&](int i) { return std::min(static_cast<int>(values[i] * factor + 8.5f), 15); };
  block.d = to_scale(d);
  for (int i = 0; i < 16; ++i) block.qs[i] = static_cast<Byte>(code(i) | code(i + 16) << 4);
}

void quantize(const float* values, Q8_0& block) {
  const float d = std::fabs(extreme(values)) / 127.0f;
  const float factor = inverse(d);
  block.d = to_scale(d);
  for (int i = 0; i < 32; ++i) block.qs[i] = static_cast<std::int8_t>(std::round(values[i] * factor));
}

}  // namespace ggml

namespace {

template <class Block>
void quantize_blocks(const float* values, std::int64_t count, std::byte* blocks) {
  for (std::int64_t i = 0; i < count; ++i, values += Block::values, blocks += sizeof(Block)) {
    Block block;
    ggml::quantize(values, block);
    std::memcpy(blocks, &block, sizeof block);
  }
}

using Quantizer = void (*)(const float* values, std::int64_t count, std::byte* blocks);

/// Null when there is none.
Quantizer quantizer_of(const BlockType& type) {
  if (type.name == "Q4_0") return quantize_blocks<ggml::Q4_0>;
  if (type.name == "Q8_0") return quantize_blocks<ggml::Q8_0>;
  if (type.name == "Q4_K") return quantize_blocks<ggml::Q4_K>;
  if (type.name == "Q6_K") return quantize_blocks<ggml::Q6_K>;
  return nullptr;
}

}  // namespace

bool can_quantize(const BlockType& type) { return quantizer_of(type) != nullptr; }

void quantize_row(const BlockType& type, const float* values, std::int64_t count, std::byte* blocks) {
  const Quantizer quantizer = quantizer_of(type);
  CHECK(quantizer != nullptr, "{}", type.name);
  CHECK(count >= 0 && count % type.values == 0, "{} values of {}", count, type.name);
  quantizer(values, count / type.values, blocks);
}

}  // namespace sluice
