#include "cpu/cpu_ops.h"
#include "cpu/rows.h"
#include "cpu/simd/row_kernels.h"

namespace sluice {

Tensor CpuOps::rms_norm(const Tensor& x, const Tensor& weight, float eps) {
  const HeadRows in(x);
  CHECK(weight.elements() == in.n, "{} for rows of {}", weight.shape().to_string(), in.n);
  const Tensor result = allocate(DType::f32, x.shape());
  const HeadRows out(result);
  const RowKernels& kernels = row_kernels(instruction_set_);
  pool_.parallel_for(in.rows, grain_of_rows(in.heads * in.n), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      for (std::int64_t head = 0; head < in.heads; ++head) {
        kernels.rms_norm(out.at(row, head), in.at(row, head), weight.as<float>(), eps, in.n);
      }
    }
  });
  return result;
}

Tensor CpuOps::add_rms_norm(const Tensor& residual, const Tensor& x, const Tensor& weight, float eps) {
  const HeadRows sum(residual), in(x);
  CHECK(residual.rank() == 2 && residual.shape() == x.shape() && weight.elements() == in.n, "{} += {}, norm of {}",
        residual.shape().to_string(), x.shape().to_string(), weight.shape().to_string());
  const Tensor result = allocate(DType::f32, x.shape());
  const HeadRows out(result);
  const RowKernels& kernels = row_kernels(instruction_set_);
  pool_.parallel_for(in.rows, grain_of_rows(in.n), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      kernels.add(sum.at(row), in.at(row), in.n);
      kernels.rms_norm(out.at(row), sum.at(row), weight.as<float>(), eps, in.n);
    }
  });
  return result;
}

}  // namespace sluice
