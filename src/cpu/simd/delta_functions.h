#pragma once
// The delta rule of RowKernels; included by the translation units of one instruction set each.
#include "cpu/simd/row_functions.h"
#include "cpu/simd/row_kernels.h"
#include "cpu/simd/vector.h"

namespace sluice {
namespace {

/// One token on Columns vectors of state columns: S *= decay; d = (v - S^T k) * beta; S += k d^T; out = S^T q.
template <int Columns>
inline void delta_columns(const DeltaHead& head, std::int64_t token, std::int64_t column) {
  const float* k = head.k + token * head.key_dim;
  const float* q = head.q + token * head.key_dim;
  const Vector decay = splat(head.decay[token]);
  float* state = head.state + column;
  Vector read[Columns];
#pragma GCC unroll 16
  for (int c = 0; c < Columns; ++c) read[c] = splat(0.0f);
  for (std::int64_t r = 0; r < head.key_dim; ++r) {
    const float* row = state + r * head.state_stride;
    const Vector key = splat(k[r]);
#pragma GCC unroll 16
    for (int c = 0; c < Columns; ++c) read[c] = fma(load(row + c * Vector::lanes), key, read[c]);
  }
  Vector change[Columns], result[Columns];
#pragma GCC unroll 16
  for (int c = 0; c < Columns; ++c) {
    const Vector value = load(head.v + token * head.v_stride + column + c * Vector::lanes);
    change[c] = (value - read[c] * decay) * splat(head.beta[token]);
    result[c] = splat(0.0f);
  }
  for (std::int64_t r = 0; r < head.key_dim; ++r) {
    float* row = state + r * head.state_stride;
    const Vector key = splat(k[r]);
    const Vector query = splat(q[r]);
#pragma GCC unroll 16
    for (int c = 0; c < Columns; ++c) {
      const Vector updated = fma(key, change[c], load(row + c * Vector::lanes) * decay);
      store(row + c * Vector::lanes, updated);
      result[c] = fma(updated, query, result[c]);
    }
  }
#pragma GCC unroll 16
  for (int c = 0; c < Columns; ++c) {
    store(head.out + token * head.out_stride + column + c * Vector::lanes, result[c]);
  }
}

void delta_steps(const DeltaHead& head, std::int64_t tokens) {
  constexpr int columns = 4;
  std::int64_t column = 0;
  for (; column + columns * Vector::lanes <= head.value_dim; column += columns * Vector::lanes) {
    for (std::int64_t t = 0; t < tokens; ++t) delta_columns<columns>(head, t, column);
  }
  for (; column < head.value_dim; column += Vector::lanes) {
    for (std::int64_t t = 0; t < tokens; ++t) delta_columns<1>(head, t, column);
  }
}

/// A matrix whose element (i, j) is data[i * row_step + j * column_step].
struct Steps {
  const float* data;
  std::int64_t row_step, column_step;
};

/// out[r] = factor * out[r] + a[r, 0 .. inner) b for Rows rows from `row` on and Columns vectors from `column` on.
template <int Rows, int Columns>
inline void multiply_block(float* out, std::int64_t out_stride, float factor, const Steps& a, const float* b,
                           std::int64_t b_stride, std::int64_t inner, std::int64_t row, std::int64_t column) {
  Vector sums[Rows][Columns];
  float* target = out + row * out_stride + column;
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 16
    for (int c = 0; c < Columns; ++c) {
      sums[r][c] = factor == 0.0f ? splat(0.0f) : load(target + r * out_stride + c * Vector::lanes) * splat(factor);
    }
  }
  const float* left = a.data + row * a.row_step;
  for (std::int64_t j = 0; j < inner; ++j) {
    const float* right = b + j * b_stride + column;
    Vector loaded[Columns];
#pragma GCC unroll 16
    for (int c = 0; c < Columns; ++c) loaded[c] = load(right + c * Vector::lanes);
#pragma GCC unroll 16
    for (int r = 0; r < Rows; ++r) {
      const Vector one = splat(left[r * a.row_step + j * a.column_step]);
#pragma GCC unroll 16
      for (int c = 0; c < Columns; ++c) sums[r][c] = fma(one, loaded[c], sums[r][c]);
    }
  }
#pragma GCC unroll 16
  for (int r = 0; r < Rows; ++r) {
#pragma GCC unroll 16
    for (int c = 0; c < Columns; ++c) store(target + r * out_stride + c * Vector::lanes, sums[r][c]);
  }
}

constexpr int row_block = Vector::lanes == 16 ? 4 : 2;
constexpr int column_block = 4;

/// Calls block.operator()<Columns>(column) over `columns` columns.
template <class Block>
inline void for_each_column_block(std::int64_t columns, Block block) {
  std::int64_t column = 0;
  for (; column + column_block * Vector::lanes <= columns; column += column_block * Vector::lanes) {
    block.template operator()<column_block>(column);
  }
  for (; column < columns; column += Vector::lanes) block.template operator()<1>(column);
}

/// out [rows, columns] = factor * out + a [rows, inner] b [inner, columns]. With `lower`, a is lower triangular and
/// what lies above its diagonal within a block of rows is 0.
inline void multiply(float* out, std::int64_t out_stride, float factor, const Steps& a, const float* b,
                     std::int64_t b_stride, std::int64_t rows, std::int64_t inner, std::int64_t columns, bool lower) {
  for_each_column_block(columns, [&]<int Columns>(std::int64_t column) {
    for (std::int64_t row = 0; row < rows; row += row_block) {
      const std::int64_t reach = lower ? row + row_block : inner;
      multiply_block<row_block, Columns>(out, out_stride, factor, a, b, b_stride, reach, row, column);
    }
  });
}

/// x [chunk, columns] = (I - a)^-1 x by forward substitution; a [chunk, chunk] is strictly lower triangular.
inline void substitute(float* x, const float* a, std::int64_t columns) {
  for_each_column_block(columns, [&]<int Columns>(std::int64_t column) {
    for (std::int64_t row = 0; row < delta_chunk; row += row_block) {
      multiply_block<row_block, Columns>(x, columns, 1.0f, {a, delta_chunk, 1}, x, columns, row, row, column);
      for (std::int64_t r = row + 1; r < row + row_block; ++r) {
        multiply_block<1, Columns>(x, columns, 1.0f, {a + row, delta_chunk, 1}, x + row * columns, columns, r - row, r,
                                   column);
      }
    }
  });
}

/// Products of the rows i and j of a chunk, times e^(G_i - G_j) and, where given, -scale[i]; 0 above the diagonal.
inline void decay_products(float* products, const double* total, const float* scale, bool diagonal) {
  for (int i = 0; i < delta_chunk; ++i) {
    float difference[delta_chunk];
    for (int j = 0; j < delta_chunk; ++j) {
      const bool seen = diagonal ? j <= i : j < i;
      difference[j] = seen ? static_cast<float>(total[i] - total[j]) : -__builtin_inff();
    }
    float* row = products + i * delta_chunk;
    const Vector factor = splat(scale == nullptr ? 1.0f : -scale[i]);
    for (int j = 0; j < delta_chunk; j += Vector::lanes) {
      const Vector weight = exp(load(difference + j));
      store(row + j, load(row + j) * weight * factor);
    }
  }
}

void delta_chunk_step(const DeltaHead& head) {
  constexpr std::int64_t chunk = delta_chunk;
  const std::int64_t n = head.key_dim;
  const std::int64_t columns = head.value_dim;
  float* transposed = head.scratch;
  float* decayed = transposed + chunk * n;
  float* key_products = decayed + chunk * n;
  float* query_products = key_products + chunk * chunk;
  float* values = query_products + chunk * chunk;

  double total[chunk];  // G, the running sum of g
  float from_start[chunk], to_end[chunk];
  double sum = 0.0;
  for (int t = 0; t < chunk; ++t) total[t] = sum += static_cast<double>(head.decay[t]);
  for (int t = 0; t < chunk; ++t) {
    from_start[t] = static_cast<float>(total[t]);
    to_end[t] = static_cast<float>(sum - total[t]);
  }
  exp_into(from_start, from_start, chunk);
  exp_into(to_end, to_end, chunk);

  for (std::int64_t t = 0; t < chunk; ++t) {
    const Vector weight = splat(to_end[t]);
    for (std::int64_t r = 0; r < n; r += Vector::lanes) store(decayed + t * n + r, load(head.k + t * n + r) * weight);
    for (std::int64_t r = 0; r < n; ++r) transposed[r * chunk + t] = head.k[t * n + r];
  }
  multiply(key_products, chunk, 0.0f, {head.k, n, 1}, transposed, chunk, chunk, n, chunk, false);
  multiply(query_products, chunk, 0.0f, {head.q, n, 1}, transposed, chunk, chunk, n, chunk, false);
  decay_products(key_products, total, head.beta, false);
  decay_products(query_products, total, nullptr, true);

  // v' solves (I + A) v' = beta (v - e^G k S).
  multiply(values, columns, 0.0f, {head.k, n, 1}, head.state, head.state_stride, chunk, n, columns, false);
  for (std::int64_t t = 0; t < chunk; ++t) {
    const Vector weight = splat(from_start[t]);
    for (std::int64_t c = 0; c < columns; c += Vector::lanes) {
      float* value = values + t * columns + c;
      store(value, (load(head.v + t * head.v_stride + c) - load(value) * weight) * splat(head.beta[t]));
    }
  }
  substitute(values, key_products, columns);

  // o = e^G q S + tril(q k^T e^(G_i - G_j)) v'.
  multiply(head.out, head.out_stride, 0.0f, {head.q, n, 1}, head.state, head.state_stride, chunk, n, columns, false);
  for (std::int64_t t = 0; t < chunk; ++t) {
    const Vector weight = splat(from_start[t]);
    for (std::int64_t c = 0; c < columns; c += Vector::lanes) {
      float* out = head.out + t * head.out_stride + c;
      store(out, load(out) * weight);
    }
  }
  multiply(head.out, head.out_stride, 1.0f, {query_products, chunk, 1}, values, columns, chunk, chunk, columns, true);

  // S = e^G_last S + (e^(G_last - G) k)^T v'.
  multiply(head.state, head.state_stride, from_start[chunk - 1], {decayed, 1, n}, values, columns, n, chunk, columns,
           false);
}

}  // namespace
}  // namespace sluice
