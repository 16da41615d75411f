#include <cmath>

#include "cpu/cpu_ops.h"
#include "cpu/rows.h"

namespace sluice {

namespace {

/// log(1 + e^x) without overflow, and without loss where e^x is small.
float softplus(float x) { return std::max(x, 0.0f) + std::log1p(std::exp(-std::fabs(x))); }

}  // namespace

std::pair<Tensor, Tensor> CpuOps::delta_gates(const Tensor& ba, const Tensor& decay, const Tensor& dt_bias) {
  const HeadRows in(ba);
  const std::int64_t heads = in.n / 2;
  CHECK(ba.rank() == 2 && in.n == 2 * heads && decay.elements() == heads && dt_bias.elements() == heads,
        "{} with decay {}, bias {}", ba.shape().to_string(), decay.shape().to_string(), dt_bias.shape().to_string());
  const Tensor g = allocate(DType::f32, {in.rows, heads});
  const Tensor beta = allocate(DType::f32, {in.rows, heads});
  const float* factor = decay.as<float>();
  const float* bias = dt_bias.as<float>();
  constexpr std::int64_t cost = 8;  // of one gate, in elements of a plain row operation
  pool_.parallel_for(in.rows, grain_of_rows(heads * cost), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const float* b = in.at(row);
      const float* a = b + heads;
      for (std::int64_t h = 0; h < heads; ++h) {
        beta.row<float>(row)[h] = 1.0f / (1.0f + std::exp(-b[h]));
        g.row<float>(row)[h] = factor[h] * softplus(a[h] + bias[h]);
      }
    }
  });
  return {g, beta};
}

}  // namespace sluice
