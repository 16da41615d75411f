#include "tensor/dtype.h"
#include "weights/ggml/blocks.h"

namespace sluice::ggml {
namespace {

/// Value i of 32 in 16 bytes.
int nibble(const Byte* qs, int i) { return i < 16 ? qs[i] & 15 : qs[i - 16] >> 4; }

/// With its fifth bit.
int five_bits(const Byte* qs, const Byte* qh, int i) { return nibble(qs, i) | ((qh[i / 8] >> (i % 8) & 1) << 4); }

}  // namespace

void dequantize(const Q4_0& block, float* out) {
  const float d = f16_to_float(block.d);
  for (int i = 0; i < 32; ++i) out[i] = d * static_cast<float>(nibble(block.qs, i) - 8);
}

void dequantize(const Q4_1& block, float* out) {
  const float d = f16_to_float(block.d), m = f16_to_float(block.m);
  for (int i = 0; i < 32; ++i) out[i] = d * static_cast<float>(nibble(block.qs, i)) + m;
}

void dequantize(const Q5_0& block, float* out) {
  const float d = f16_to_float(block.d);
  for (int i = 0; i < 32; ++i) out[i] = d * static_cast<float>(five_bits(block.qs, block.qh, i) - 16);
}

void dequantize(const Q5_1& block, float* out) {
  const float d = f16_to_float(block.d), m = f16_to_float(block.m);
  for (int i = 0; i < 32; ++i) out[i] = d * static_cast<float>(five_bits(block.qs, block.qh, i)) + m;
}

void dequantize(const Q8_0& block, float* out) {
  const float d = f16_to_float(block.d);
  for (int i = 0; i < 32; ++i) out[i] = d * static_cast<float>(block.qs[i]);
}

}  // namespace sluice::ggml
