#pragma once
// Vectors of float32 as wide as the instruction set that this file is compiled for. Only for translation units that
// are compiled for one instruction set: everything here has internal linkage, so that none of it is shared.
#include <cstdint>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace sluice {
namespace {

#if defined(__AVX512F__)

struct Vector {
  static constexpr int lanes = 16;
  __m512 v;
};
inline Vector load(const float* p) { return {_mm512_loadu_ps(p)}; }
inline void store(float* p, Vector a) { _mm512_storeu_ps(p, a.v); }
inline __mmask16 first_lanes(std::int64_t n) { return static_cast<__mmask16>((1u << n) - 1u); }
inline Vector load_first(const float* p, std::int64_t n) { return {_mm512_maskz_loadu_ps(first_lanes(n), p)}; }
inline void store_first(float* p, Vector a, std::int64_t n) { _mm512_mask_storeu_ps(p, first_lanes(n), a.v); }
inline Vector splat(float a) { return {_mm512_set1_ps(a)}; }
inline Vector operator+(Vector a, Vector b) { return {_mm512_add_ps(a.v, b.v)}; }
inline Vector operator-(Vector a, Vector b) { return {_mm512_sub_ps(a.v, b.v)}; }
inline Vector operator*(Vector a, Vector b) { return {_mm512_mul_ps(a.v, b.v)}; }
inline Vector operator/(Vector a, Vector b) { return {_mm512_div_ps(a.v, b.v)}; }
inline Vector fma(Vector a, Vector b, Vector c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
inline Vector max(Vector a, Vector b) { return {_mm512_max_ps(a.v, b.v)}; }
inline Vector min(Vector a, Vector b) { return {_mm512_min_ps(a.v, b.v)}; }
inline Vector round(Vector a) { return {_mm512_roundscale_ps(a.v, 0)}; }
inline Vector times_power_of_two(Vector a, Vector n) { return {_mm512_scalef_ps(a.v, n.v)}; }
/// a, but 0 where x < bound.
inline Vector zero_below(Vector x, Vector bound, Vector a) {
  return {_mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x.v, bound.v, _CMP_NLT_UQ), a.v)};
}
inline __m256 halves_added(Vector a) {
  return _mm256_add_ps(_mm512_castps512_ps256(a.v), _mm256_castpd_ps(_mm512_extractf64x4_pd(_mm512_castps_pd(a.v), 1)));
}
inline float reduce_max(Vector a) { return _mm512_reduce_max_ps(a.v); }
inline Vector load_bf16(const std::uint16_t* p) {
  const __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  return {_mm512_castsi512_ps(_mm512_slli_epi32(wide, 16))};
}
inline void store_bf16(std::uint16_t* p, Vector a) {
  const __m512i bits = _mm512_castps_si512(a.v);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
  const __mmask16 nan = _mm512_cmp_ps_mask(a.v, a.v, _CMP_UNORD_Q);
  const __m512i quiet = _mm512_or_si512(bits, _mm512_set1_epi32(0x400000));
  const __m512i kept = _mm512_mask_mov_epi32(rounded, nan, quiet);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtepi32_epi16(_mm512_srli_epi32(kept, 16)));
}

#elif defined(__AVX2__)

struct Vector {
  static constexpr int lanes = 8;
  __m256 v;
};
inline Vector load(const float* p) { return {_mm256_loadu_ps(p)}; }
inline void store(float* p, Vector a) { _mm256_storeu_ps(p, a.v); }
inline __m256i first_lanes(std::int64_t n) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
inline Vector load_first(const float* p, std::int64_t n) { return {_mm256_maskload_ps(p, first_lanes(n))}; }
inline void store_first(float* p, Vector a, std::int64_t n) { _mm256_maskstore_ps(p, first_lanes(n), a.v); }
inline Vector splat(float a) { return {_mm256_set1_ps(a)}; }
inline Vector operator+(Vector a, Vector b) { return {_mm256_add_ps(a.v, b.v)}; }
inline Vector operator-(Vector a, Vector b) { return {_mm256_sub_ps(a.v, b.v)}; }
inline Vector operator*(Vector a, Vector b) { return {_mm256_mul_ps(a.v, b.v)}; }
inline Vector operator/(Vector a, Vector b) { return {_mm256_div_ps(a.v, b.v)}; }
inline Vector fma(Vector a, Vector b, Vector c) { return {_mm256_fmadd_ps(a.v, b.v, c.v)}; }
inline Vector max(Vector a, Vector b) { return {_mm256_max_ps(a.v, b.v)}; }
inline Vector min(Vector a, Vector b) { return {_mm256_min_ps(a.v, b.v)}; }
inline Vector round(Vector a) { return {_mm256_round_ps(a.v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)}; }
inline Vector times_power_of_two(Vector a, Vector n) {
  const __m256i biased = _mm256_add_epi32(_mm256_cvtps_epi32(n.v), _mm256_set1_epi32(127));
  return {_mm256_mul_ps(a.v, _mm256_castsi256_ps(_mm256_slli_epi32(biased, 23)))};
}
/// a, but 0 where x < bound.
inline Vector zero_below(Vector x, Vector bound, Vector a) {
  return {_mm256_andnot_ps(_mm256_cmp_ps(x.v, bound.v, _CMP_LT_OQ), a.v)};
}
inline __m256 halves_added(Vector a) { return a.v; }
inline float reduce_max(Vector a) {
  __m128 m = _mm_max_ps(_mm256_castps256_ps128(a.v), _mm256_extractf128_ps(a.v, 1));
  m = _mm_max_ps(m, _mm_movehl_ps(m, m));
  return _mm_cvtss_f32(_mm_max_ss(m, _mm_movehdup_ps(m)));
}
inline Vector load_bf16(const std::uint16_t* p) {
  const __m256i wide = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  return {_mm256_castsi256_ps(_mm256_slli_epi32(wide, 16))};
}
inline void store_bf16(std::uint16_t* p, Vector a) {
  const __m256i bits = _mm256_castps_si256(a.v);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
  const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(a.v, a.v, _CMP_UNORD_Q));
  const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
  const __m256i kept = _mm256_srli_epi32(_mm256_blendv_epi8(rounded, quiet, nan), 16);
  const __m128i packed = _mm_packus_epi32(_mm256_castsi256_si128(kept), _mm256_extracti128_si256(kept, 1));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), packed);
}

#else

using FourFloats = float __attribute__((vector_size(16)));
using FourInts = std::int32_t __attribute__((vector_size(16)));

struct Vector {
  static constexpr int lanes = 4;
  FourFloats v;
};
inline Vector load_first(const float* p, std::int64_t n) {
  Vector a{};
  __builtin_memcpy(&a.v, p, static_cast<unsigned long>(n) * sizeof(float));
  return a;
}
inline void store_first(float* p, Vector a, std::int64_t n) {
  __builtin_memcpy(p, &a.v, static_cast<unsigned long>(n) * sizeof(float));
}
inline Vector load(const float* p) { return load_first(p, 4); }
inline void store(float* p, Vector a) { store_first(p, a, 4); }
inline Vector splat(float a) { return {FourFloats{a, a, a, a}}; }
inline Vector operator+(Vector a, Vector b) { return {a.v + b.v}; }
inline Vector operator-(Vector a, Vector b) { return {a.v - b.v}; }
inline Vector operator*(Vector a, Vector b) { return {a.v * b.v}; }
inline Vector operator/(Vector a, Vector b) { return {a.v / b.v}; }
inline Vector fma(Vector a, Vector b, Vector c) { return {a.v * b.v + c.v}; }
inline FourFloats chosen(FourInts mask, FourFloats a, FourFloats b) {
  return reinterpret_cast<FourFloats>((reinterpret_cast<FourInts>(a) & mask) | (reinterpret_cast<FourInts>(b) & ~mask));
}
inline Vector max(Vector a, Vector b) { return {chosen(a.v > b.v, a.v, b.v)}; }
inline Vector min(Vector a, Vector b) { return {chosen(a.v < b.v, a.v, b.v)}; }
/// For |a| below 2^22: adding 1.5 * 2^23 leaves no bits for a fraction.
inline Vector round(Vector a) { return a + splat(12582912.0f) - splat(12582912.0f); }
inline Vector times_power_of_two(Vector a, Vector n) {
  Vector power;
  for (int i = 0; i < 4; ++i) {
    const std::int32_t exponent = n.v[i] == n.v[i] ? static_cast<std::int32_t>(n.v[i]) : 0;
    const std::int32_t bits = (exponent + 127) << 23;
    float value;
    __builtin_memcpy(&value, &bits, sizeof value);
    power.v[i] = value;
  }
  return a * power;
}
/// a, but 0 where x < bound.
inline Vector zero_below(Vector x, Vector bound, Vector a) { return {chosen(x.v < bound.v, FourFloats{}, a.v)}; }
inline float reduce_max(Vector a) {
  float m = a.v[0];
  for (int i = 1; i < 4; ++i) m = a.v[i] > m ? a.v[i] : m;
  return m;
}
inline Vector load_bf16(const std::uint16_t* p) {
  FourInts bits;
  for (int i = 0; i < 4; ++i) bits[i] = static_cast<std::int32_t>(static_cast<std::uint32_t>(p[i]) << 16);
  return {reinterpret_cast<FourFloats>(bits)};
}
inline void store_bf16(std::uint16_t* p, Vector a) {
  for (int i = 0; i < 4; ++i) {
    const float value = a.v[i];
    std::uint32_t bits;
    __builtin_memcpy(&bits, &value, sizeof bits);
    bits = value != value ? bits | 0x400000u : bits + 0x7fffu + ((bits >> 16) & 1u);
    p[i] = static_cast<std::uint16_t>(bits >> 16);
  }
}

#endif

/// The sums of the lanes of four vectors, to out[0 .. 3].
inline void reduce_add_4(Vector a, Vector b, Vector c, Vector d, float* out) {
#if defined(__AVX2__)
  const __m256 ab = _mm256_hadd_ps(halves_added(a), halves_added(b));
  const __m256 cd = _mm256_hadd_ps(halves_added(c), halves_added(d));
  const __m256 sums = _mm256_hadd_ps(ab, cd);
  _mm_storeu_ps(out, _mm_add_ps(_mm256_castps256_ps128(sums), _mm256_extractf128_ps(sums, 1)));
#else
  out[0] = (a.v[0] + a.v[1]) + (a.v[2] + a.v[3]);
  out[1] = (b.v[0] + b.v[1]) + (b.v[2] + b.v[3]);
  out[2] = (c.v[0] + c.v[1]) + (c.v[2] + c.v[3]);
  out[3] = (d.v[0] + d.v[1]) + (d.v[2] + d.v[3]);
#endif
}

inline float reduce_add(Vector a) {
  float sums[4];
  reduce_add_4(a, a, a, a, sums);
  return sums[0];
}

/// e^x to about one unit in the last place: e^x = 2^n e^r with |r| <= ln(2) / 2, e^r by the polynomial of Cephes expf.
/// 0 below the smallest normal result; above the largest, about 2.4e38. NaN stays NaN.
inline Vector exp(Vector x) {
  const Vector lowest = splat(-87.33654f);
  const Vector clamped = max(lowest, min(splat(88.37626f), x));
  const Vector n = round(clamped * splat(1.44269504f));
  const Vector r = fma(n, splat(2.12194440e-4f), fma(n, splat(-0.693359375f), clamped));
  Vector p = splat(1.9875691500e-4f);
  p = fma(p, r, splat(1.3981999507e-3f));
  p = fma(p, r, splat(8.3334519073e-3f));
  p = fma(p, r, splat(4.1665795894e-2f));
  p = fma(p, r, splat(1.6666665459e-1f));
  p = fma(p, r, splat(5.0000001201e-1f));
  const Vector power = fma(p, r * r, r) + splat(1.0f);
  return zero_below(x, lowest, times_power_of_two(power, n));
}

inline Vector sigmoid(Vector x) {
  const Vector one = splat(1.0f);
  return one / (one + exp(splat(0.0f) - x));
}

/// Calls body(offset, lanes) for each vector of a row of n elements; the last may have fewer lanes.
template <class Body>
inline void for_each_vector(std::int64_t n, Body body) {
  std::int64_t i = 0;
  for (; i + Vector::lanes <= n; i += Vector::lanes) body(i, std::int64_t{Vector::lanes});
  if (i < n) body(i, n - i);
}

inline Vector load_some(const float* p, std::int64_t n) { return n == Vector::lanes ? load(p) : load_first(p, n); }
inline void store_some(float* p, Vector a, std::int64_t n) {
  if (n == Vector::lanes) {
    store(p, a);
  } else {
    store_first(p, a, n);
  }
}

}  // namespace
}  // namespace sluice
