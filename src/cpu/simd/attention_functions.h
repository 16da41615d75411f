#pragma once
// The attention tile of RowKernels; included by the translation units of one instruction set each.
#include "cpu/simd/row_kernels.h"
#include "cpu/simd/vector.h"

namespace sluice {
namespace {

// Query rows and keys, or vectors of values, that one inner loop holds in registers.
constexpr int query_block = Vector::lanes == 16 ? 4 : 2;
constexpr int key_block = 4;

/// scores[r][j] of `Rows` queries and all keys below `keys`, rounded up to key_block.
template <int Rows>
inline void score_rows(const AttentionTile& tile, std::int64_t first, std::int64_t keys) {
  const std::int64_t n = tile.head_dim;
  const float* q = tile.q + first * n;
  for (std::int64_t j = 0; j < keys; j += key_block) {
    Vector sums[Rows][key_block];
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 16
      for (int c = 0; c < key_block; ++c) sums[r][c] = splat(0.0f);
    }
    const float* k = tile.keys + j * n;
    for (std::int64_t d = 0; d < n; d += Vector::lanes) {
      Vector key[key_block];
#pragma GCC unroll 16
      for (int c = 0; c < key_block; ++c) key[c] = load(k + c * n + d);
#pragma GCC unroll 16
      for (int r = 0; r < Rows; ++r) {
        const Vector query = load(q + r * n + d);
#pragma GCC unroll 16
        for (int c = 0; c < key_block; ++c) sums[r][c] = fma(query, key[c], sums[r][c]);
      }
    }
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r) {
      reduce_add_4(sums[r][0], sums[r][1], sums[r][2], sums[r][3], tile.scores + (first + r) * attention_tile + j);
    }
  }
}

/// Turns one row of scores into weights e^(score - maximum); the factor by which older sums shrink is returned.
inline float soften_row(const AttentionTile& tile, std::int64_t row) {
  float* scores = tile.scores + row * attention_tile;
  if (tile.visible[row] == 0) {
    for (int j = 0; j < attention_tile; ++j) scores[j] = 0.0f;
    return 1.0f;
  }
  for (int j = tile.visible[row]; j < attention_tile; ++j) scores[j] = -__builtin_inff();
  Vector highest = splat(tile.maxima[row]);
  for (int j = 0; j < attention_tile; j += Vector::lanes) highest = max(highest, load(scores + j));
  const float maximum = reduce_max(highest);
  const Vector subtracted = splat(maximum);
  Vector sum = splat(0.0f);
  for (int j = 0; j < attention_tile; j += Vector::lanes) {
    const Vector weight = exp(load(scores + j) - subtracted);
    store(scores + j, weight);
    sum = sum + weight;
  }
  float shrink[Vector::lanes];
  store(shrink, exp(splat(tile.maxima[row] - maximum)));
  tile.maxima[row] = maximum;
  tile.sums[row] = tile.sums[row] * shrink[0] + reduce_add(sum);
  return shrink[0];
}

/// accumulators[r] = accumulators[r] * shrink[r] + weights[r] times values, Columns vectors of them from column d on.
template <int Rows, int Columns>
inline void accumulate_rows(const AttentionTile& tile, std::int64_t first, std::int64_t keys, const float* shrink,
                            std::int64_t d) {
  const std::int64_t n = tile.head_dim;
  float* out = tile.accumulators + first * n + d;
  const float* weights = tile.scores + first * attention_tile;
  Vector sums[Rows][Columns];
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 16
    for (int c = 0; c < Columns; ++c) sums[r][c] = load(out + r * n + c * Vector::lanes) * splat(shrink[r]);
  }
  for (std::int64_t j = 0; j < keys; ++j) {
    const float* values = tile.values + j * n + d;
    Vector value[Columns];
#pragma GCC unroll 16
    for (int c = 0; c < Columns; ++c) value[c] = load(values + c * Vector::lanes);
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r) {
      const Vector weight = splat(weights[r * attention_tile + j]);
#pragma GCC unroll 16
      for (int c = 0; c < Columns; ++c) sums[r][c] = fma(weight, value[c], sums[r][c]);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 16
    for (int c = 0; c < Columns; ++c) store(out + r * n + c * Vector::lanes, sums[r][c]);
  }
}

template <int Rows>
inline void attend_rows(const AttentionTile& tile, std::int64_t first) {
  std::int64_t keys = 0;
  for (int r = 0; r < Rows; ++r) keys = tile.visible[first + r] > keys ? tile.visible[first + r] : keys;
  if (keys == 0) return;
  score_rows<Rows>(tile, first, keys);
  float shrink[Rows];
  for (int r = 0; r < Rows; ++r) shrink[r] = soften_row(tile, first + r);
  std::int64_t d = 0;
  for (; d + 4 * Vector::lanes <= tile.head_dim; d += 4 * Vector::lanes) {
    accumulate_rows<Rows, 4>(tile, first, keys, shrink, d);
  }
  for (; d < tile.head_dim; d += Vector::lanes) accumulate_rows<Rows, 1>(tile, first, keys, shrink, d);
}

/// A query's result does not depend on the queries beside it: a key that it does not see adds exactly 0.
void attend(const AttentionTile& tile) {
  std::int64_t row = 0;
  for (; row + query_block <= tile.queries; row += query_block) attend_rows<query_block>(tile, row);
  for (; row < tile.queries; ++row) attend_rows<1>(tile, row);
}

}  // namespace
}  // namespace sluice
