#pragma once
#include "weights/encode/encoder.h"

namespace sluice {

extern const Encoder bf16_encoder, f16_encoder, f32_encoder;
/// Blocks of ggml in one tensor.
extern const Encoder q4_0_encoder, q8_0_encoder, q4_k_encoder, q6_k_encoder;
/// e4m3 with a float32 factor for each block of 128 x 128.
extern const Encoder fp8_encoder;
/// ModelOpt's form: e2m1 with an e4m3 factor for each group of 16 columns, and one float32 for the matrix, with which
/// the largest number of the stack just fits.
extern const Encoder nvfp4_encoder;
/// compressed-tensors' pack-quantized: symmetric 4-bit numbers, a bf16 factor for each group of 128 columns, or of the
/// largest power of two below that divides them.
extern const Encoder int4_encoder;

}  // namespace sluice
