#pragma once
#include <cstdint>

namespace sluice {

/// What measures the limits of a machine, for one instruction set.
struct ProbeKernels {
  /// Reads `count` floats, a multiple of 64, and nothing else; the result only keeps the reads alive.
  float (*read)(const float* data, std::int64_t count);
  /// Multiplies and adds in registers, in float32 and in what multiplies bf16; returns the number of floating-point
  /// operations (a multiplication and an addition are two).
  std::int64_t (*multiply_f32)(std::int64_t rounds, float* sink);
  std::int64_t (*multiply_bf16)(std::int64_t rounds, float* sink);
};

extern const ProbeKernels probe_kernels_plain, probe_kernels_avx2, probe_kernels_avx512, probe_kernels_avx512_bf16;

}  // namespace sluice
