#pragma once
// From codes to numbers, for translation units that are compiled for one instruction set each: everything here has
// internal linkage and calls nothing that is shared.
#include "cpu/linear/expand.h"
#include "cpu/linear/tile_functions.h"

namespace sluice {
namespace {

#if defined(__AVX2__)

/// A byte for each row of a panel.
struct Sixteen {
  __m128i v;
};
inline Sixteen sixteen(const std::byte* p) { return {_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))}; }
template <int shift, int mask>
inline Sixteen bits(Sixteen a) {
  return {_mm_and_si128(_mm_srli_epi16(a.v, shift), _mm_set1_epi8(mask))};
}
inline Sixteen look_up(Sixteen table, Sixteen index) { return {_mm_shuffle_epi8(table.v, index.v)}; }
inline Sixteen six_bits(Sixteen low, Sixteen high) {
  const __m128i code = _mm_or_si128(low.v, _mm_slli_epi16(high.v, 4));
  return {_mm_sub_epi8(code, _mm_set1_epi8(32))};
}
/// The bytes of one vector's rows, moved to the front.
inline __m128i rows_of(Sixteen a, int vector) { return vector == 0 ? a.v : _mm_unpackhi_epi64(a.v, a.v); }

#if defined(__AVX512F__)
inline Vector from_signed(Sixteen a, int) { return {_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(a.v))}; }
inline Vector from_unsigned(Sixteen a, int) { return {_mm512_cvtepi32_ps(_mm512_cvtepu8_epi32(a.v))}; }
inline Vector from_exponent(Sixteen a, int) {
  const __m512i wide = _mm512_cvtepu8_epi32(a.v);
  const __m512i least = _mm512_set1_epi32(0x00400000);  // 2^-127
  return {_mm512_castsi512_ps(_mm512_max_epi32(_mm512_slli_epi32(wide, 23), least))};
}
/// As float16 of the same fields, whose exponent counts from 8 less.
inline Vector from_e4m3(Sixteen a, int) {
  const __m256i wide = _mm256_cvtepu8_epi16(a.v);
  const __m256i sign = _mm256_slli_epi16(_mm256_and_si256(wide, _mm256_set1_epi16(0x80)), 8);
  const __m256i rest = _mm256_slli_epi16(_mm256_and_si256(wide, _mm256_set1_epi16(0x7f)), 7);
  return Vector{_mm512_cvtph_ps(_mm256_or_si256(sign, rest))} * splat(256.0f);
}
inline Vector from_f16(const std::byte* p) {
  return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)))};
}
#else
inline Vector from_signed(Sixteen a, int vector) {
  return {_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(rows_of(a, vector)))};
}
inline Vector from_unsigned(Sixteen a, int vector) {
  return {_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(rows_of(a, vector)))};
}
inline Vector from_exponent(Sixteen a, int vector) {
  const __m256i wide = _mm256_cvtepu8_epi32(rows_of(a, vector));
  const __m256i least = _mm256_set1_epi32(0x00400000);  // 2^-127
  return {_mm256_castsi256_ps(_mm256_max_epi32(_mm256_slli_epi32(wide, 23), least))};
}
/// As float16 of the same fields, whose exponent counts from 8 less.
inline Vector from_e4m3(Sixteen a, int vector) {
  const __m128i wide = _mm_cvtepu8_epi16(rows_of(a, vector));
  const __m128i sign = _mm_slli_epi16(_mm_and_si128(wide, _mm_set1_epi16(0x80)), 8);
  const __m128i rest = _mm_slli_epi16(_mm_and_si128(wide, _mm_set1_epi16(0x7f)), 7);
  return Vector{_mm256_cvtph_ps(_mm_or_si128(sign, rest))} * splat(256.0f);
}
inline Vector from_f16(const std::byte* p) {
  return {_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))};
}
#endif

#else

struct Sixteen {
  std::uint8_t v[16];
};
inline Sixteen sixteen(const std::byte* p) { return read<Sixteen>(p); }
template <int shift, int mask>
inline Sixteen bits(Sixteen a) {
  for (std::uint8_t& byte : a.v) byte = static_cast<std::uint8_t>(byte >> shift & mask);
  return a;
}
inline Sixteen look_up(Sixteen table, Sixteen index) {
  for (std::uint8_t& byte : index.v) byte = table.v[byte & 15];
  return index;
}
inline Sixteen six_bits(Sixteen low, Sixteen high) {
  for (int i = 0; i < 16; ++i) low.v[i] = static_cast<std::uint8_t>((low.v[i] | high.v[i] << 4) - 32);
  return low;
}
template <class Map>
inline Vector mapped(Sixteen a, int vector, Map map) {
  Vector result;
  for (int i = 0; i < Vector::lanes; ++i) result.v[i] = map(a.v[vector * Vector::lanes + i]);
  return result;
}
inline float float_of(std::uint32_t bits) {
  float value;
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}
inline Vector from_signed(Sixteen a, int vector) {
  return mapped(a, vector, [](std::uint8_t byte) { return static_cast<float>(static_cast<std::int8_t>(byte)); });
}
inline Vector from_unsigned(Sixteen a, int vector) {
  return mapped(a, vector, [](std::uint8_t byte) { return static_cast<float>(byte); });
}
inline Vector from_exponent(Sixteen a, int vector) {
  return mapped(a, vector,
                [](std::uint8_t byte) { return float_of(byte == 0 ? 0x00400000u : std::uint32_t{byte} << 23); });
}
/// The exponent is moved to its place, then corrected by a factor: so subnormal numbers come out right too.
inline Vector from_e4m3(Sixteen a, int vector) {
  return mapped(a, vector, [](std::uint8_t byte) {
    const float magnitude = float_of((byte & 0x7fu) << 20) * 0x1p120f;
    return (byte & 0x80u) != 0 ? -magnitude : magnitude;
  });
}
inline Vector from_f16(const std::byte* p) {
  const FourWords half = __builtin_convertvector(read<FourHalves>(p), FourWords);
  const FourFloats scaled = reinterpret_cast<FourFloats>((half & 0x7fffu) << 13) * 0x1p112f;
  return {reinterpret_cast<FourFloats>(reinterpret_cast<FourWords>(scaled) | (half & 0x8000u) << 16)};
}

#endif

/// Factor `index` of each row.
struct Factors {
  Vector at[panel_vectors];
};

inline Factors factors_at(FactorType type, const std::byte* factors, std::int64_t index) {
  Factors found;
  const std::byte* bytes = factors + index * panel_rows;  // as many as there are when they are bytes
  for (int i = 0; i < panel_vectors; ++i) {
    const std::int64_t row = index * panel_rows + i * Vector::lanes;
    switch (type) {
      case FactorType::none: found.at[i] = splat(1.0f); break;
      case FactorType::f32: found.at[i] = load(reinterpret_cast<const float*>(factors) + row); break;
      case FactorType::f16: found.at[i] = from_f16(factors + 2 * row); break;
      case FactorType::bf16: found.at[i] = load_bf16(reinterpret_cast<const std::uint16_t*>(factors) + row); break;
      case FactorType::f8_e4m3: found.at[i] = from_e4m3(sixteen(bytes), i); break;
      case FactorType::f8_e8m0: found.at[i] = from_exponent(sixteen(bytes), i); break;
      case FactorType::u8: found.at[i] = from_unsigned(sixteen(bytes), i); break;
      case FactorType::i8: found.at[i] = from_signed(sixteen(bytes), i); break;
    }
  }
  return found;
}

inline Factors operator*(const Factors& a, const Factors& b) {
  Factors product;
  for (int i = 0; i < panel_vectors; ++i) product.at[i] = a.at[i] * b.at[i];
  return product;
}

/// Codes of the even and of the odd column of a pair.
template <CodeKind kind>
struct Pair {
  Sixteen column[2];
  Pair(const CodedColumns& c, Sixteen table, std::int64_t even) {
    if constexpr (kind == CodeKind::int8 || kind == CodeKind::f8_e4m3) {
      column[0] = sixteen(c.codes + even * panel_rows);
      column[1] = sixteen(c.codes + (even + 1) * panel_rows);
      return;
    }
    const Sixteen both = sixteen(c.codes + even / 2 * panel_rows);
    column[0] = bits<0, 15>(both);
    column[1] = bits<4, 15>(both);
    if constexpr (kind == CodeKind::table) {
      for (Sixteen& codes : column) codes = look_up(table, codes);
    } else {
      const Sixteen high = sixteen(c.high_codes + even / 4 * panel_rows);
      column[0] = six_bits(column[0], even % 4 == 0 ? bits<0, 3>(high) : bits<4, 3>(high));
      column[1] = six_bits(column[1], even % 4 == 0 ? bits<2, 3>(high) : bits<6, 3>(high));
    }
  }
  Vector number(int odd, int vector) const {
    if constexpr (kind == CodeKind::f8_e4m3) return from_e4m3(column[odd], vector);
    return from_signed(column[odd], vector);
  }
};

struct Float32Out {
  static constexpr std::int64_t column_bytes = 64;
  static void write(std::byte* out, const Vector* even, const Vector* odd) {
    auto* to = reinterpret_cast<float*>(out);
    for (int i = 0; i < panel_vectors; ++i) {
      store(to + i * Vector::lanes, even[i]);
      store(to + panel_rows + i * Vector::lanes, odd[i]);
    }
  }
};

template <class Out, CodeKind kind, bool has_offsets>
void expand_columns(const CodedColumns& c) {
  const Coding& coding = *c.coding;
  const Sixteen table = sixteen(reinterpret_cast<const std::byte*>(&coding.table));
  const std::int64_t end = c.first + c.count;
  std::byte* out = c.out;
  for (std::int64_t column = c.first; column < end;) {
    const std::int64_t group = column / coding.group, super = coding.super_group > 0 ? column / coding.super_group : 0;
    const std::int64_t group_end = (group + 1) * coding.group, until = group_end < end ? group_end : end;
    Factors scale = factors_at(coding.scales, c.scales, group);
    if (coding.supers != FactorType::none) scale = scale * factors_at(coding.supers, c.supers, super);
    Factors offset{};
    if constexpr (has_offsets) {
      offset = factors_at(coding.offsets, c.offsets, group) *
               (coding.zero_points ? scale : factors_at(coding.super_offsets, c.super_offsets, super));
    }
    for (; column < until; column += 2) {
      const Pair<kind> pair(c, table, column);
      Vector numbers[2][panel_vectors];
#pragma GCC unroll 2
      for (int odd = 0; odd < 2; ++odd) {
#pragma GCC unroll 4
        for (int i = 0; i < panel_vectors; ++i) {
          numbers[odd][i] = pair.number(odd, i) * scale.at[i];
          if constexpr (has_offsets) numbers[odd][i] = numbers[odd][i] - offset.at[i];
        }
      }
      Out::write(out, numbers[0], numbers[1]);
      out += 2 * Out::column_bytes;
    }
  }
}

template <class Out, CodeKind kind>
void expand_kind(const CodedColumns& c) {
  if (c.coding->offsets == FactorType::none) return expand_columns<Out, kind, false>(c);
  expand_columns<Out, kind, true>(c);
}

template <class Out>
void expand(const CodedColumns& c) {
  switch (c.coding->codes) {
    case CodeKind::table: return expand_kind<Out, CodeKind::table>(c);
    case CodeKind::int8: return expand_kind<Out, CodeKind::int8>(c);
    case CodeKind::f8_e4m3: return expand_kind<Out, CodeKind::f8_e4m3>(c);
    case CodeKind::six_bit: return expand_kind<Out, CodeKind::six_bit>(c);
  }
}

}  // namespace
}  // namespace sluice
