#include <bit>
#include <cmath>

#include "tensor/dtype.h"
#include "weights/coding.h"
#include "weights/ggml/blocks.h"

namespace sluice::ggml {
namespace {

/// Twice what a code of float4_e2m1 stands for.
float doubled(int code) { return static_cast<float>(e2m1_halves[static_cast<std::size_t>(code)]); }

/// Half of 2^(exponent - 127): the values are doubled.
float half_power(Byte exponent) {
  if (exponent < 2) return std::bit_cast<float>(0x00200000u << exponent);
  return std::bit_cast<float>(static_cast<std::uint32_t>(exponent - 1) << 23);
}

/// Half of an unsigned float8_e4m3: the values are doubled. The code of NaN is zero; the highest bit is passed over, so
/// that 0xff is the number that e4m3 proper has no code for.
float half_e4m3(Byte code) {
  if (code == 0x7f) return 0.0f;
  const int exponent = code >> 3 & 15, mantissa = code & 7;
  if (exponent == 0) return std::ldexp(static_cast<float>(mantissa), -10);
  return std::ldexp(static_cast<float>(mantissa + 8), exponent - 11);
}

void put_digit(int code, float d, float& out) { out = d * static_cast<float>((code & 255) * 3 / 256 - 1); }

}  // namespace

void dequantize(const MXFP4& block, float* out) {
  const float d = half_power(block.e);
  for (int i = 0; i < 16; ++i) {
    out[i] = d * doubled(block.qs[i] & 15);
    out[i + 16] = d * doubled(block.qs[i] >> 4);
  }
}

void dequantize(const NVFP4& block, float* out) {
  for (int i = 0; i < 32; ++i) {
    const float d = half_e4m3(block.d[i / 8]);
    float* first = out + i / 8 * 16 + i % 8;
    first[0] = d * doubled(block.qs[i] & 15);
    first[8] = d * doubled(block.qs[i] >> 4);
  }
}

void dequantize(const TQ1_0& block, float* out) {
  const float d = f16_to_float(block.d);
  for (int digit = 0, power = 1; digit < 5; ++digit, power *= 3) {
    for (int i = 0; i < 32; ++i) put_digit(block.qs[i] * power, d, out[digit * 32 + i]);
    for (int i = 0; i < 16; ++i) put_digit(block.qs[32 + i] * power, d, out[160 + digit * 16 + i]);
    if (digit == 4) break;
    for (int i = 0; i < 4; ++i) put_digit(block.qh[i] * power, d, out[240 + digit * 4 + i]);
  }
}

void dequantize(const TQ2_0& block, float* out) {
  const float d = f16_to_float(block.d);
  for (int i = 0; i < 256; ++i) {
    const int code = block.qs[i / 128 * 32 + i % 32] >> (i % 128 / 32 * 2) & 3;
    out[i] = d * static_cast<float>(code - 1);
  }
}

}  // namespace sluice::ggml
