#pragma once
// Only for translation units that are compiled for one instruction set each, as simd/vector.h.
#include "cpu/simd/probe_kernels.h"
#include "cpu/simd/vector.h"

namespace sluice {
namespace {

/// Enough independent sums to hide the latency of an addition.
constexpr int probe_sums = 12;

/// Streams that are read side by side: the processor fetches each of them ahead.
constexpr std::int64_t probe_streams = 4;

float read_floats(const float* data, std::int64_t count) {
  const std::int64_t length = count / probe_streams;
  Vector sums[probe_streams];
#pragma GCC unroll 4
  for (int j = 0; j < probe_streams; ++j) sums[j] = splat(0.0f);
  for (std::int64_t i = 0; i < length; i += 16) {
#pragma GCC unroll 4
    for (int j = 0; j < probe_streams; ++j) {
      const float* line = data + j * length + i;
      __builtin_prefetch(line + 256);
#pragma GCC unroll 4
      for (int k = 0; k < 16; k += Vector::lanes) sums[j] = sums[j] + load(line + k);
    }
  }
  return reduce_add(sums[0] + sums[1] + (sums[2] + sums[3]));
}

std::int64_t multiply_floats(std::int64_t rounds, float* sink) {
  Vector sums[probe_sums];
#pragma GCC unroll 12
  for (int j = 0; j < probe_sums; ++j) sums[j] = splat(*sink + static_cast<float>(j));
  Vector factor = splat(0.5f);
  for (std::int64_t i = 0; i < rounds; ++i) {
    asm volatile("" : "+x"(factor.v));  // the loop has to run
#pragma GCC unroll 12
    for (int j = 0; j < probe_sums; ++j) sums[j] = fma(sums[j], factor, factor);
  }
#pragma GCC unroll 12
  for (int j = 1; j < probe_sums; ++j) sums[0] = sums[0] + sums[j];
  *sink = reduce_add(sums[0]);
  return rounds * probe_sums * Vector::lanes * 2;
}

}  // namespace
}  // namespace sluice
