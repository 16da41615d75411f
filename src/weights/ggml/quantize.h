#pragma once
#include <cstddef>
#include <cstdint>

#include "weights/ggml/blocks.h"
#include "weights/ggml_blocks.h"

namespace sluice {

/// Whether quantize_row knows the type: Q4_0, Q8_0, Q4_K and Q6_K.
bool can_quantize(const BlockType& type);
/// `count` finite floats, a whole number of blocks, as blocks. Values beyond what the type can say become the nearest
/// that it can.
void quantize_row(const BlockType& type, const float* values, std::int64_t count, std::byte* blocks);

namespace ggml {

// One block of Block::values floats, as the reference of ggml makes it.
void quantize(const float* values, Q4_0& block);
void quantize(const float* values, Q8_0& block);
void quantize(const float* values, Q4_K& block);
void quantize(const float* values, Q6_K& block);

}  // namespace ggml
}  // namespace sluice
