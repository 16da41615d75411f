#include "cpu/linear/expand_functions.h"

namespace sluice {

namespace {

/// Sums of products of pairs of bf16: the instruction adds the two products of a pair, odd column first, to the sum.
struct PairTile {
  template <int rows, int panels>
  static void run(const Tile& tile) {
    const auto* x = static_cast<const std::int32_t*>(tile.x);
    const std::byte* weights = tile.weights;
    const std::size_t panel_bytes = tile.panel_bytes;
    Sums<rows, panels> sums;
    sums.begin(tile);
    for (std::int64_t pair = 0; pair < tile.pairs; ++pair) {
      fetch<rows, panels>(weights, panel_bytes, 64);
      __m512i w[panels];
#pragma GCC unroll 4
      for (int p = 0; p < panels; ++p) w[p] = _mm512_loadu_si512(weights + static_cast<std::size_t>(p) * panel_bytes);
#pragma GCC unroll 8
      for (int r = 0; r < rows; ++r) {
        const __m512i value = _mm512_set1_epi32(x[r]);
#pragma GCC unroll 4
        for (int p = 0; p < panels; ++p) {
          sums.at[r][p].v = _mm512_dpbf16_ps(sums.at[r][p].v, (__m512bh)value, (__m512bh)w[p]);
        }
      }
      x += rows;
      weights += 64;
    }
    sums.end(tile);
  }
};

/// bf16 of 32 columns of one row, its pairs `rows` apart.
inline void pack_columns(const float* x, std::int64_t count, int rows, std::uint32_t* out) {
  alignas(64) std::uint32_t pairs[16];
  const std::int64_t low = count < 16 ? count : 16;
  const __m512 a = load_first(x, low).v, b = load_first(x + low, count - low).v;
  _mm512_store_si512(pairs, (__m512i)_mm512_cvtne2ps_pbh(b, a));
  for (std::int64_t i = 0; i < (count + 1) / 2; ++i) out[i * rows] = pairs[i];
}

void pack_bf16(const float* const* x, int row_count, std::int64_t in, void* packed) {
  auto* out = static_cast<std::uint32_t*>(packed);
  for (std::int64_t column = 0; column < in; column += 32) {
    const std::int64_t count = in - column < 32 ? in - column : 32;
    for (int r = 0; r < row_count; ++r) pack_columns(x[r] + column, count, row_count, out + column / 2 * row_count + r);
  }
}

struct Bf16Out {
  static constexpr std::int64_t column_bytes = 32;
  static void write(std::byte* out, const Vector* even, const Vector* odd) {
    alignas(64) static constexpr std::uint16_t interleaved[32] = {0,  16, 1,  17, 2,  18, 3,  19, 4,  20, 5,
                                                                  21, 6,  22, 7,  23, 8,  24, 9,  25, 10, 26,
                                                                  11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
    const __m512i both = (__m512i)_mm512_cvtne2ps_pbh(odd->v, even->v);
    _mm512_storeu_si512(out, _mm512_permutexvar_epi16(_mm512_load_si512(interleaved), both));
  }
};

}  // namespace

const ExpandCoded avx512_bf16_expand = expand<Bf16Out>;
const TileKernels avx512_bf16_pairs{8, 3, sizeof(std::uint16_t), pack_bf16, tile_table<PairTile, 8, 3>.functions};

}  // namespace sluice
