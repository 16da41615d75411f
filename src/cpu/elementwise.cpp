#include <cmath>
#include <cstring>

#include "cpu/cpu_ops.h"
#include "cpu/rows.h"
#include "cpu/simd/row_kernels.h"

namespace sluice {

namespace {

/// Calls body(row) for all rows, in parallel where that pays.
template <class Body>
void for_rows(ThreadPool& pool, std::int64_t rows, std::int64_t elements_a_row, Body body) {
  pool.parallel_for(rows, grain_of_rows(elements_a_row), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) body(row);
  });
}

}  // namespace

void CpuOps::add_bias(const Tensor& x, const Tensor& bias) {
  const HeadRows rows(x);
  CHECK(x.rank() == 2 && bias.dtype() == DType::f32 && bias.elements() == rows.n, "{} += {}", x.shape().to_string(),
        bias.shape().to_string());
  const RowKernels& kernels = row_kernels(instruction_set_);
  for_rows(pool_, rows.rows, rows.n, [&](std::int64_t row) { kernels.add(rows.at(row), bias.as<float>(), rows.n); });
}

void CpuOps::add_to(const Tensor& residual, const Tensor& x) {
  const HeadRows sum(residual), in(x);
  CHECK(residual.shape() == x.shape(), "{} += {}", residual.shape().to_string(), x.shape().to_string());
  const RowKernels& kernels = row_kernels(instruction_set_);
  for_rows(pool_, in.rows, in.heads * in.n, [&](std::int64_t row) {
    for (std::int64_t head = 0; head < in.heads; ++head) kernels.add(sum.at(row, head), in.at(row, head), in.n);
  });
}

Tensor CpuOps::silu_mul(const Tensor& gate_up) {
  const HeadRows in(gate_up);
  CHECK(gate_up.rank() == 2 && in.n % 2 == 0, "{}", gate_up.shape().to_string());
  const std::int64_t n = in.n / 2;
  const Tensor result = allocate(DType::f32, {in.rows, n});
  const HeadRows out(result);
  const RowKernels& kernels = row_kernels(instruction_set_);
  for_rows(pool_, in.rows, in.n,
           [&](std::int64_t row) { kernels.silu_mul(out.at(row), in.at(row), in.at(row) + n, n); });
  return result;
}

void CpuOps::sigmoid_mul(const Tensor& x, const Tensor& gate) {
  const HeadRows rows(x), gates(gate);
  CHECK(x.shape() == gate.shape(), "{} by {}", x.shape().to_string(), gate.shape().to_string());
  const RowKernels& kernels = row_kernels(instruction_set_);
  for_rows(pool_, rows.rows, rows.heads * rows.n, [&](std::int64_t row) {
    for (std::int64_t head = 0; head < rows.heads; ++head) {
      kernels.sigmoid_mul(rows.at(row, head), gates.at(row, head), rows.n);
    }
  });
}

void CpuOps::add_gated(const Tensor& accumulate, const Tensor& x, const Tensor& gate) {
  const HeadRows sum(accumulate), in(x), gates(gate);
  CHECK(accumulate.shape() == x.shape() && x.rank() == 2 && gate.shape() == (Shape{in.rows, 1}), "{} += {} by {}",
        accumulate.shape().to_string(), x.shape().to_string(), gate.shape().to_string());
  const RowKernels& kernels = row_kernels(instruction_set_);
  for_rows(pool_, in.rows, in.n, [&](std::int64_t row) {
    const float share = 1.0f / (1.0f + std::exp(-*gates.at(row)));
    kernels.add_scaled(sum.at(row), in.at(row), share, in.n);
  });
}

Tensor CpuOps::gather_rows(const Tensor& x, const Tensor& indices) {
  const HeadRows in(x);
  CHECK(x.rank() == 2 && indices.rank() == 1 && indices.is_contiguous(), "rows {} of {}", indices.shape().to_string(),
        x.shape().to_string());
  const std::int64_t count = indices.size(0);
  const Tensor result = allocate(DType::f32, {count, in.n});
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t row = indices.as<std::int32_t>()[i];
    CHECK(row >= 0 && row < in.rows, "row {} of {}", row, in.rows);
    std::memcpy(result.row<float>(i), in.at(row), static_cast<std::size_t>(in.n) * sizeof(float));
  }
  return result;
}

Tensor CpuOps::concat_columns(const Tensor& a, const Tensor& b) {
  const HeadRows left(a), right(b);
  CHECK(a.rank() == 2 && b.rank() == 2 && left.rows == right.rows, "{} beside {}", a.shape().to_string(),
        b.shape().to_string());
  const Tensor result = allocate(DType::f32, {left.rows, left.n + right.n});
  for (std::int64_t row = 0; row < left.rows; ++row) {
    float* out = result.row<float>(row);
    std::memcpy(out, left.at(row), static_cast<std::size_t>(left.n) * sizeof(float));
    std::memcpy(out + left.n, right.at(row), static_cast<std::size_t>(right.n) * sizeof(float));
  }
  return result;
}

}  // namespace sluice
