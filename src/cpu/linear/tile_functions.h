#pragma once
// The tiles of matrix products, for translation units that are compiled for one instruction set each: everything here
// has internal linkage and calls nothing that is shared.
#include <utility>

#include "cpu/linear/tile.h"
#include "cpu/simd/vector.h"

namespace sluice {
namespace {

/// Vectors in the 16 values of a panel's column.
constexpr int panel_vectors = static_cast<int>(panel_rows) / Vector::lanes;

/// Bytes of weights that a tile of few rows fetches ahead of its use: it is bound by memory.
constexpr std::int64_t fetch_ahead = 1024;

template <class T>
inline T read(const std::byte* p) {
  T value;
  __builtin_memcpy(&value, p, sizeof value);
  return value;
}

struct F32Panels {
  static constexpr std::int64_t pair_bytes = 128;
  template <int column>
  static Vector load(const std::byte* pair, int vector) {
    return sluice::load(reinterpret_cast<const float*>(pair) + column * 16 + vector * Vector::lanes);
  }
};

#if defined(__AVX512F__)

struct Bf16Panels {
  static constexpr std::int64_t pair_bytes = 64;
  template <int column>
  static Vector load(const std::byte* pair, int) {
    const __m512i both = _mm512_loadu_si512(pair);
    return {_mm512_castsi512_ps(column == 0
                                    ? _mm512_slli_epi32(both, 16)
                                    : _mm512_and_si512(both, _mm512_set1_epi32(static_cast<int>(0xffff0000u))))};
  }
};
struct F16Panels {
  static constexpr std::int64_t pair_bytes = 64;
  template <int column>
  static Vector load(const std::byte* pair, int) {
    return {_mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(pair) + column))};
  }
};

#elif defined(__AVX2__)

struct Bf16Panels {
  static constexpr std::int64_t pair_bytes = 64;
  template <int column>
  static Vector load(const std::byte* pair, int vector) {
    const __m256i both = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(pair) + vector);
    return {_mm256_castsi256_ps(column == 0
                                    ? _mm256_slli_epi32(both, 16)
                                    : _mm256_and_si256(both, _mm256_set1_epi32(static_cast<int>(0xffff0000u))))};
  }
};
struct F16Panels {
  static constexpr std::int64_t pair_bytes = 64;
  template <int column>
  static Vector load(const std::byte* pair, int vector) {
    return {_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(pair) + column * 2 + vector))};
  }
};

#else

using FourWords = std::uint32_t __attribute__((vector_size(16)));
using FourHalves = std::uint16_t __attribute__((vector_size(8)));

struct Bf16Panels {
  static constexpr std::int64_t pair_bytes = 64;
  template <int column>
  static Vector load(const std::byte* pair, int vector) {
    const auto both = read<FourWords>(pair + 16 * vector);
    return {reinterpret_cast<FourFloats>(column == 0 ? both << 16 : both & 0xffff0000u)};
  }
};
struct F16Panels {
  static constexpr std::int64_t pair_bytes = 64;
  /// The exponent is moved to its place, then corrected by a factor: so subnormal numbers come out right too.
  template <int column>
  static Vector load(const std::byte* pair, int vector) {
    const FourWords half = __builtin_convertvector(read<FourHalves>(pair + 32 * column + 8 * vector), FourWords);
    const FourWords magnitude = (half & 0x7fffu) << 13;
    const FourFloats scaled = reinterpret_cast<FourFloats>(magnitude) * 0x1p112f;
    const FourWords special = reinterpret_cast<FourWords>(magnitude >= 0x0f800000u) & 0x7f800000u;
    return {reinterpret_cast<FourFloats>(reinterpret_cast<FourWords>(scaled) | special | (half & 0x8000u) << 16)};
  }
};

#endif

/// Running sums of a tile.
template <int rows, int panels>
struct Sums {
  static constexpr int vectors = panels * panel_vectors;
  Vector at[rows][vectors];

  static std::int64_t lanes_of(const Tile& tile, int vector) {
    const std::int64_t left = tile.columns - vector * Vector::lanes;
    return left < 0 ? 0 : left < Vector::lanes ? left : Vector::lanes;
  }
  __attribute__((always_inline)) void begin(const Tile& tile) {
    const bool whole = tile.columns >= panels * panel_rows;
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
      const float* from = tile.out + r * tile.out_stride;
#pragma GCC unroll 12
      for (int i = 0; i < vectors; ++i) {
        if (!tile.go_on) {
          at[r][i] = splat(0.0f);
        } else if (whole) {
          at[r][i] = load(from + i * Vector::lanes);
        } else {
          at[r][i] = load_first(from + i * Vector::lanes, lanes_of(tile, i));
        }
      }
    }
  }
  __attribute__((always_inline)) void end(const Tile& tile) const {
    const bool whole = tile.columns >= panels * panel_rows;
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
      float* to = tile.out + r * tile.out_stride;
#pragma GCC unroll 12
      for (int i = 0; i < vectors; ++i) {
        if (whole) {
          store(to + i * Vector::lanes, at[r][i]);
        } else {
          store_first(to + i * Vector::lanes, at[r][i], lanes_of(tile, i));
        }
      }
    }
  }
};

template <int rows, int panels>
__attribute__((always_inline)) inline void fetch(const std::byte* weights, std::size_t panel_bytes,
                                                 std::int64_t pair_bytes) {
  if constexpr (rows <= 4) {
#pragma GCC unroll 4
    for (int p = 0; p < panels; ++p) {
      for (std::int64_t line = 0; line < pair_bytes; line += 64) {
        __builtin_prefetch(weights + static_cast<std::size_t>(p) * panel_bytes + fetch_ahead + line);
      }
    }
  }
}

/// Products in float32, of weights of type W and float32 inputs.
template <class W>
struct Float32Tile {
  template <int column, int rows, int panels>
  __attribute__((always_inline)) static void add_column(Sums<rows, panels>& sums, const float* x, const std::byte* pair,
                                                        std::size_t panel_bytes) {
    Vector w[Sums<rows, panels>::vectors];
#pragma GCC unroll 12
    for (int i = 0; i < Sums<rows, panels>::vectors; ++i) {
      w[i] =
          W::template load<column>(pair + static_cast<std::size_t>(i / panel_vectors) * panel_bytes, i % panel_vectors);
    }
#pragma GCC unroll 8
    for (int r = 0; r < rows; ++r) {
      const Vector value = splat(x[r]);
#pragma GCC unroll 12
      for (int i = 0; i < Sums<rows, panels>::vectors; ++i) sums.at[r][i] = fma(value, w[i], sums.at[r][i]);
    }
  }

  template <int rows, int panels>
  static void run(const Tile& tile) {
    const auto* x = static_cast<const float*>(tile.x);
    const std::byte* weights = tile.weights;
    const std::size_t panel_bytes = tile.panel_bytes;
    Sums<rows, panels> sums;
    sums.begin(tile);
    for (std::int64_t pair = 0; pair < tile.pairs; ++pair) {
      fetch<rows, panels>(weights, panel_bytes, W::pair_bytes);
      add_column<0>(sums, x, weights, panel_bytes);
      add_column<1>(sums, x + rows, weights, panel_bytes);
      x += 2 * rows;
      weights += W::pair_bytes;
    }
    sums.end(tile);
  }
};

inline void pack_float32(const float* const* x, int row_count, std::int64_t in, void* packed) {
  auto* out = static_cast<float*>(packed);
  for (std::int64_t column = 0; column < in; ++column) {
    for (int r = 0; r < row_count; ++r) *out++ = x[r][column];
  }
  if (in % 2 == 0) return;
  for (int r = 0; r < row_count; ++r) *out++ = 0.0f;
}

template <int count>
struct TileTable {
  void (*functions[count])(const Tile& tile);
};

template <class Kernel, int panels, int... indices>
constexpr TileTable<static_cast<int>(sizeof...(indices))> make_tiles(std::integer_sequence<int, indices...>) {
  return {{&Kernel::template run<indices / panels + 1, indices % panels + 1>...}};
}

template <class Kernel, int rows, int panels>
constexpr auto tile_table = make_tiles<Kernel, panels>(std::make_integer_sequence<int, rows * panels>());

template <class W, int rows, int panels>
constexpr TileKernels float32_kernels{rows, panels, sizeof(float), pack_float32,
                                      tile_table<Float32Tile<W>, rows, panels>.functions};

}  // namespace
}  // namespace sluice
