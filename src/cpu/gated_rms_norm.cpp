#include "cpu/cpu_ops.h"
#include "cpu/rows.h"
#include "cpu/simd/row_kernels.h"

namespace sluice {

Tensor CpuOps::gated_rms_norm(const Tensor& x, const Tensor& gate, const Tensor& weight, float eps,
                              GateActivation activation) {
  const HeadRows in(x), gates(gate);
  CHECK(x.shape() == gate.shape() && weight.elements() == in.n, "{} by {}, norm of {}", x.shape().to_string(),
        gate.shape().to_string(), weight.shape().to_string());
  const Tensor result = allocate(DType::f32, {in.rows, in.heads * in.n});
  const HeadRows out(result.split_columns(in.heads, in.n));
  const RowKernels& kernels = row_kernels(instruction_set_);
  const bool swish = activation == GateActivation::swish;
  pool_.parallel_for(in.rows, grain_of_rows(in.heads * in.n), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      for (std::int64_t head = 0; head < in.heads; ++head) {
        kernels.gated_rms_norm(out.at(row, head), in.at(row, head), gates.at(row, head), weight.as<float>(), eps, swish,
                               in.n);
      }
    }
  });
  return result;
}

}  // namespace sluice
