#pragma once
// The delta rule of RowKernels; included by the translation units of one instruction set each.
#include "cpu/simd/row_functions.h"
#include "cpu/simd/row_kernels.h"
#include "cpu/simd/vector.h"

namespace sluice {
namespace {

// Columns of the state are worked on in strips of so many vectors, packed while several tokens pass over them.
constexpr int strip_vectors = 2;
static_assert(strip_vectors * Vector::lanes <= delta_strip);

template <int Columns>
inline void copy_columns(float* out, std::int64_t out_stride, const float* in, std::int64_t in_stride,
                         std::int64_t rows) {
  for (std::int64_t r = 0; r < rows; ++r) {
#pragma GCC unroll 16
    for (int c = 0; c < Columns; ++c) {
      store(out + r * out_stride + c * Vector::lanes, load(in + r * in_stride + c * Vector::lanes));
    }
  }
}

/// One token on Columns vectors of state columns: S *= decay; d = (v - S^T k) * beta; S += k d^T; out = S^T q.
template <int Columns>
inline void delta_token(const DeltaHead& head, std::int64_t token, float* state, std::int64_t stride,
                        std::int64_t column) {
  const float* k = head.k + token * head.key_dim;
  const float* q = head.q + token * head.key_dim;
  const Vector decay = splat(head.decay[token]);
  // Even and odd rows apart: twice as many sums that do not wait for each other.
  Vector sums[2][Columns];
#pragma GCC unroll 16
  for (int c = 0; c < Columns; ++c) sums[0][c] = sums[1][c] = splat(0.0f);
  for (std::int64_t r = 0; r < head.key_dim; r += 2) {
#pragma GCC unroll 2
    for (int odd = 0; odd < 2; ++odd) {
      const Vector key = splat(k[r + odd]);
#pragma GCC unroll 16
      for (int c = 0; c < Columns; ++c) {
        sums[odd][c] = fma(load(state + (r + odd) * stride + c * Vector::lanes), key, sums[odd][c]);
      }
    }
  }
  Vector change[Columns];
#pragma GCC unroll 16
  for (int c = 0; c < Columns; ++c) {
    const Vector value = load(head.v + token * head.v_stride + column + c * Vector::lanes);
    change[c] = (value - (sums[0][c] + sums[1][c]) * decay) * splat(head.beta[token]);
    sums[0][c] = sums[1][c] = splat(0.0f);
  }
  for (std::int64_t r = 0; r < head.key_dim; r += 2) {
#pragma GCC unroll 2
    for (int odd = 0; odd < 2; ++odd) {
      const Vector key = splat(k[r + odd]);
      const Vector query = splat(q[r + odd]);
      float* row = state + (r + odd) * stride;
#pragma GCC unroll 16
      for (int c = 0; c < Columns; ++c) {
        const Vector updated = fma(key, change[c], load(row + c * Vector::lanes) * decay);
        store(row + c * Vector::lanes, updated);
        sums[odd][c] = fma(updated, query, sums[odd][c]);
      }
    }
  }
#pragma GCC unroll 16
  for (int c = 0; c < Columns; ++c) {
    store(head.out + token * head.out_stride + column + c * Vector::lanes, sums[0][c] + sums[1][c]);
  }
}

template <int Columns>
inline void delta_steps_strip(const DeltaHead& head, std::int64_t tokens, std::int64_t column) {
  constexpr std::int64_t width = Columns * Vector::lanes;
  copy_columns<Columns>(head.scratch, width, head.state + column, head.state_stride, head.key_dim);
  for (std::int64_t t = 0; t < tokens; ++t) delta_token<Columns>(head, t, head.scratch, width, column);
  copy_columns<Columns>(head.state + column, head.state_stride, head.scratch, width, head.key_dim);
}

void delta_steps(const DeltaHead& head, std::int64_t tokens) {
  constexpr int lanes = Vector::lanes;
  constexpr int wide = 2 * strip_vectors;
  std::int64_t column = 0;
  if (tokens == 1) {
    for (; column + wide * lanes <= head.value_dim; column += wide * lanes) {
      delta_token<wide>(head, 0, head.state + column, head.state_stride, column);
    }
    for (; column < head.value_dim; column += lanes) {
      delta_token<1>(head, 0, head.state + column, head.state_stride, column);
    }
    return;
  }
  for (; column + strip_vectors * lanes <= head.value_dim; column += strip_vectors * lanes) {
    delta_steps_strip<strip_vectors>(head, tokens, column);
  }
  for (; column < head.value_dim; column += lanes) delta_steps_strip<1>(head, tokens, column);
}

/// A matrix whose element (i, j) is data[i * row_step + j * column_step].
struct Steps {
  const float* data;
  std::int64_t row_step, column_step;
};

/// out[r] = factor * out[r] + a[r, 0 .. inner) b for Rows rows of out and a. b and out are packed, Columns vectors
/// wide.
template <int Rows, int Columns>
inline void multiply_block(float* out, float factor, const Steps& a, const float* b, std::int64_t inner) {
  constexpr std::int64_t width = Columns * Vector::lanes;
  Vector sums[Rows][Columns];
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 16
    for (int c = 0; c < Columns; ++c) {
      sums[r][c] = factor == 0.0f ? splat(0.0f) : load(out + r * width + c * Vector::lanes) * splat(factor);
    }
  }
  for (std::int64_t j = 0; j < inner; ++j) {
    Vector loaded[Columns];
#pragma GCC unroll 16
    for (int c = 0; c < Columns; ++c) loaded[c] = load(b + j * width + c * Vector::lanes);
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r) {
      const Vector one = splat(a.data[r * a.row_step + j * a.column_step]);
#pragma GCC unroll 16
      for (int c = 0; c < Columns; ++c) sums[r][c] = fma(one, loaded[c], sums[r][c]);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 16
    for (int c = 0; c < Columns; ++c) store(out + r * width + c * Vector::lanes, sums[r][c]);
  }
}

constexpr int row_block = Vector::lanes == 16 ? 8 : 4;

/// out [rows, strip] = factor * out + a [rows, inner] b [inner, strip], rows from `first` on. With `lower`, a is lower
/// triangular, and 0 above its diagonal.
template <int Columns>
inline void multiply(float* out, float factor, const Steps& a, const float* b, std::int64_t first, std::int64_t rows,
                     std::int64_t inner, bool lower) {
  for (std::int64_t row = first; row < rows; row += row_block) {
    const Steps block{a.data + row * a.row_step, a.row_step, a.column_step};
    multiply_block<row_block, Columns>(out + row * Columns * Vector::lanes, factor, block, b,
                                       lower ? row + row_block : inner);
  }
}

/// x [chunk, strip] = (I - a)^-1 x by forward substitution; a [chunk, chunk] is strictly lower triangular.
template <int Columns>
inline void substitute(float* x, const float* a) {
  constexpr std::int64_t width = Columns * Vector::lanes;
  for (std::int64_t row = 0; row < delta_chunk; row += row_block) {
    multiply_block<row_block, Columns>(x + row * width, 1.0f, {a + row * delta_chunk, delta_chunk, 1}, x, row);
    for (std::int64_t r = row + 1; r < row + row_block; ++r) {
      multiply_block<1, Columns>(x + r * width, 1.0f, {a + r * delta_chunk + row, delta_chunk, 1}, x + row * width,
                                 r - row);
    }
  }
}

/// Memory of one chunk, and its gates.
struct ChunkScratch {
  explicit ChunkScratch(const DeltaHead& head)
      : state(head.scratch),
        transposed(state + head.key_dim * delta_strip),
        decayed(transposed + delta_chunk * head.key_dim),
        key_products(decayed + delta_chunk * head.key_dim),
        query_products(key_products + delta_chunk * delta_chunk),
        values(query_products + delta_chunk * delta_chunk),
        out(values + delta_chunk * delta_strip) {}

  float* state;                                        // [key_dim, strip]
  float* transposed;                                   // [chunk / strip][key_dim, strip] keys
  float* decayed;                                      // [chunk, key_dim] keys times e^(G_last - G)
  float* key_products;                                 // [chunk, chunk]
  float* query_products;                               // [chunk, chunk]
  float *values, *out;                                 // [chunk, strip]
  float from_start[delta_chunk], to_end[delta_chunk];  // e^G, e^(G_last - G)
  double total[delta_chunk];                           // G, the running sum of g
};

/// products [chunk, chunk] = (x k^T) e^(G_i - G_j), times -scale[i] where given; 0 above the diagonal, and on it unless
/// `diagonal`. Exponents are never positive.
inline void decayed_products(const DeltaHead& head, const ChunkScratch& scratch, const float* x, const float* scale,
                             bool diagonal, float* products) {
  constexpr std::int64_t width = strip_vectors * Vector::lanes;
  float strip[delta_chunk * delta_strip];
  for (std::int64_t first = 0; first < delta_chunk; first += width) {
    multiply<strip_vectors>(strip, 0.0f, {x, head.key_dim, 1}, scratch.transposed + first * head.key_dim, first,
                            delta_chunk, head.key_dim, false);
    copy_columns<strip_vectors>(products + first * delta_chunk + first, delta_chunk, strip + first * width, width,
                                delta_chunk - first);
  }
  for (int i = 0; i < delta_chunk; ++i) {
    float difference[delta_chunk];
    const int seen = diagonal ? i + 1 : i;
    for (int j = 0; j < delta_chunk; ++j) difference[j] = static_cast<float>(scratch.total[i] - scratch.total[j]);
    for (int j = seen; j < delta_chunk; ++j) difference[j] = -__builtin_inff();
    float* row = products + i * delta_chunk;
    const Vector factor = splat(scale == nullptr ? 1.0f : -scale[i]);
    int j = 0;
    for (; j < seen; j += Vector::lanes) {
      store(row + j, load(row + j) * exp(load(difference + j)) * factor);
    }
    for (; j < delta_chunk; j += Vector::lanes) store(row + j, splat(0.0f));
  }
}

inline void prepare_chunk(const DeltaHead& head, ChunkScratch& scratch) {
  constexpr std::int64_t width = strip_vectors * Vector::lanes;
  const std::int64_t n = head.key_dim;
  double sum = 0.0;
  for (int t = 0; t < delta_chunk; ++t) scratch.total[t] = sum += static_cast<double>(head.decay[t]);
  for (int t = 0; t < delta_chunk; ++t) {
    scratch.from_start[t] = static_cast<float>(scratch.total[t]);
    scratch.to_end[t] = static_cast<float>(sum - scratch.total[t]);
  }
  exp_into(scratch.from_start, scratch.from_start, delta_chunk);
  exp_into(scratch.to_end, scratch.to_end, delta_chunk);
  for (std::int64_t t = 0; t < delta_chunk; ++t) {
    const float* key = head.k + t * n;
    const Vector weight = splat(scratch.to_end[t]);
    for (std::int64_t r = 0; r < n; r += Vector::lanes) store(scratch.decayed + t * n + r, load(key + r) * weight);
    float* column = scratch.transposed + t / width * width * n + t % width;
    for (std::int64_t r = 0; r < n; ++r) column[r * width] = key[r];
  }
  decayed_products(head, scratch, head.k, head.beta, false, scratch.key_products);
  decayed_products(head, scratch, head.q, nullptr, true, scratch.query_products);
}

/// The chunk on Columns vectors of value columns.
template <int Columns>
inline void delta_chunk_strip(const DeltaHead& head, const ChunkScratch& scratch, std::int64_t column) {
  constexpr std::int64_t width = Columns * Vector::lanes;
  constexpr std::int64_t chunk = delta_chunk;
  const std::int64_t n = head.key_dim;
  copy_columns<Columns>(scratch.state, width, head.state + column, head.state_stride, n);

  // v' solves (I + A) v' = beta (v - e^G k S), A = beta (k k^T) e^(G_i - G_j).
  multiply<Columns>(scratch.values, 0.0f, {head.k, n, 1}, scratch.state, 0, chunk, n, false);
  for (std::int64_t t = 0; t < chunk; ++t) {
    const Vector weight = splat(scratch.from_start[t]);
#pragma GCC unroll 16
    for (int c = 0; c < Columns; ++c) {
      float* value = scratch.values + t * width + c * Vector::lanes;
      const Vector v = load(head.v + t * head.v_stride + column + c * Vector::lanes);
      store(value, (v - load(value) * weight) * splat(head.beta[t]));
    }
  }
  substitute<Columns>(scratch.values, scratch.key_products);

  // o = e^G q S + tril(q k^T e^(G_i - G_j)) v'.
  multiply<Columns>(scratch.out, 0.0f, {head.q, n, 1}, scratch.state, 0, chunk, n, false);
  for (std::int64_t t = 0; t < chunk; ++t) {
    const Vector weight = splat(scratch.from_start[t]);
#pragma GCC unroll 16
    for (int c = 0; c < Columns; ++c) {
      float* out = scratch.out + t * width + c * Vector::lanes;
      store(out, load(out) * weight);
    }
  }
  multiply<Columns>(scratch.out, 1.0f, {scratch.query_products, chunk, 1}, scratch.values, 0, chunk, chunk, true);
  copy_columns<Columns>(head.out + column, head.out_stride, scratch.out, width, chunk);

  // S = e^G_last S + (e^(G_last - G) k)^T v'.
  multiply<Columns>(scratch.state, scratch.from_start[chunk - 1], {scratch.decayed, 1, n}, scratch.values, 0, n, chunk,
                    false);
  copy_columns<Columns>(head.state + column, head.state_stride, scratch.state, width, n);
}

void delta_chunk_step(const DeltaHead& head) {
  ChunkScratch scratch(head);
  prepare_chunk(head, scratch);
  std::int64_t column = 0;
  for (; column + strip_vectors * Vector::lanes <= head.value_dim; column += strip_vectors * Vector::lanes) {
    delta_chunk_strip<strip_vectors>(head, scratch, column);
  }
  for (; column < head.value_dim; column += Vector::lanes) delta_chunk_strip<1>(head, scratch, column);
}

}  // namespace
}  // namespace sluice
