#include "tensor/dtype.h"
#include "weights/ggml/blocks.h"
#include "weights/ggml/k_scales.h"

namespace sluice::ggml {
namespace {

/// Two bits of value i: four values share a byte, 32 apart.
int two_bits(const Byte* qs, int i) { return qs[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3; }

/// Four bits of value i: two values share a byte, 32 apart.
int four_bits(const Byte* qs, int i) { return qs[i / 64 * 32 + i % 32] >> (i % 64 / 32 * 4) & 15; }

/// Bit of value i: eight values share a byte, 32 apart.
int one_bit(const Byte* bits, int i) { return bits[i % 32] >> (i / 32) & 1; }

}  // namespace

void dequantize(const Q2_K& block, float* out) {
  const float d = f16_to_float(block.d), dmin = f16_to_float(block.dmin);
  for (int group = 0; group < 16; ++group) {
    const float scale = d * static_cast<float>(block.scales[group] & 15);
    const float minimum = dmin * static_cast<float>(block.scales[group] >> 4);
    for (int i = group * 16; i < group * 16 + 16; ++i) {
      out[i] = scale * static_cast<float>(two_bits(block.qs, i)) - minimum;
    }
  }
}

void dequantize(const Q3_K& block, float* out) {
  const float d = f16_to_float(block.d);
  for (int group = 0; group < 16; ++group) {
    const int low = block.scales[group % 8] >> (group / 8 * 4) & 15;
    const int high = block.scales[8 + group % 4] >> (group / 4 * 2) & 3;
    const float scale = d * static_cast<float>((low | high << 4) - 32);
    for (int i = group * 16; i < group * 16 + 16; ++i) {
      out[i] = scale * static_cast<float>(two_bits(block.qs, i) + 4 * one_bit(block.hmask, i) - 4);
    }
  }
}

void dequantize(const Q4_K& block, float* out) {
  const float d = f16_to_float(block.d), dmin = f16_to_float(block.dmin);
  for (int group = 0; group < 8; ++group) {
    const ScaleMin scales = unpack_scale_min(block.scales, group);
    const float scale = d * static_cast<float>(scales.scale), minimum = dmin * static_cast<float>(scales.minimum);
    for (int i = group * 32; i < group * 32 + 32; ++i) {
      out[i] = scale * static_cast<float>(four_bits(block.qs, i)) - minimum;
    }
  }
}

void dequantize(const Q5_K& block, float* out) {
  const float d = f16_to_float(block.d), dmin = f16_to_float(block.dmin);
  for (int group = 0; group < 8; ++group) {
    const ScaleMin scales = unpack_scale_min(block.scales, group);
    const float scale = d * static_cast<float>(scales.scale), minimum = dmin * static_cast<float>(scales.minimum);
    for (int i = group * 32; i < group * 32 + 32; ++i) {
      out[i] = scale * static_cast<float>(four_bits(block.qs, i) | one_bit(block.qh, i) << 4) - minimum;
    }
  }
}

void dequantize(const Q6_K& block, float* out) {
  const float d = f16_to_float(block.d);
  for (int group = 0; group < 16; ++group) {
    const float scale = d * static_cast<float>(block.scales[group]);
    for (int i = group * 16; i < group * 16 + 16; ++i) {
      const int low = block.ql[i / 128 * 64 + i % 64] >> (i % 128 / 64 * 4) & 15;
      out[i] = scale * static_cast<float>((low | two_bits(block.qh, i) << 4) - 32);
    }
  }
}

}  // namespace sluice::ggml
