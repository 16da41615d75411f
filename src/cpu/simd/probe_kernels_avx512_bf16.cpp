#include "cpu/simd/probe_functions.h"

namespace sluice {

namespace {

std::int64_t multiply_pairs(std::int64_t rounds, float* sink) {
  __m512 sums[probe_sums];
#pragma GCC unroll 12
  for (int j = 0; j < probe_sums; ++j) sums[j] = _mm512_set1_ps(*sink + static_cast<float>(j));
  __m512i factor = _mm512_set1_epi32(0x3f003f00);  // pairs of 0.5
  for (std::int64_t i = 0; i < rounds; ++i) {
    asm volatile("" : "+v"(factor));
#pragma GCC unroll 12
    for (int j = 0; j < probe_sums; ++j) sums[j] = _mm512_dpbf16_ps(sums[j], (__m512bh)factor, (__m512bh)factor);
  }
#pragma GCC unroll 12
  for (int j = 1; j < probe_sums; ++j) sums[0] = _mm512_add_ps(sums[0], sums[j]);
  *sink = reduce_add(Vector{sums[0]});
  return rounds * probe_sums * 32 * 2;
}

}  // namespace

const ProbeKernels probe_kernels_avx512_bf16 = {read_floats, multiply_floats, multiply_pairs};

}  // namespace sluice
