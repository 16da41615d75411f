#include <cmath>

#include "cpu/cpu_ops.h"
#include "cpu/rows.h"
#include "cpu/simd/row_kernels.h"

namespace sluice {

namespace {

/// Cosines, then sines of a row's angles, [rows, 2 * frequencies].
Tensor angles(Ops& ops, ThreadPool& pool, const BatchView& batch, const Rope& rope) {
  const std::int64_t rows = batch.rows();
  const std::int64_t frequencies = rope.inverse_frequencies.elements();
  CHECK(batch.positions.shape() == (Shape{3, rows}) && rope.axes.elements() == frequencies,
        "positions {}, {} frequencies, {} axes", batch.positions.shape().to_string(), frequencies,
        rope.axes.elements());
  const Tensor result = ops.allocate(DType::f32, {rows, 2 * frequencies});
  const auto* axes = rope.axes.as<std::int32_t>();
  for (std::int64_t i = 0; i < frequencies; ++i) CHECK(axes[i] >= 0 && axes[i] < 3, "axis {}", axes[i]);
  constexpr std::int64_t cost = 32;  // of one angle, in elements of a plain row operation
  pool.parallel_for(rows, grain_of_rows(frequencies * cost), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      float* cosines = result.row<float>(row);
      for (std::int64_t i = 0; i < frequencies; ++i) {
        const auto position = static_cast<float>(batch.positions.row<std::int32_t>(axes[i])[row]);
        const float angle = position * rope.inverse_frequencies.as<float>()[i];
        cosines[i] = std::cos(angle) * rope.scale;
        cosines[frequencies + i] = std::sin(angle) * rope.scale;
      }
    }
  });
  return result;
}

}  // namespace

void CpuOps::rope(const Tensor& x, const BatchView& batch, const Rope& rope) {
  const HeadRows heads(x);
  const std::int64_t frequencies = rope.inverse_frequencies.elements();
  CHECK(x.rank() == 3 && heads.rows == batch.rows() && 2 * frequencies <= heads.n, "{} with {} rows, {} frequencies",
        x.shape().to_string(), batch.rows(), frequencies);
  const Scope scope(*this);
  const Tensor turns = angles(*this, pool_, batch, rope);
  const RowKernels& kernels = row_kernels(instruction_set_);
  pool_.parallel_for(heads.rows, grain_of_rows(heads.heads * heads.n), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      const float* cosines = turns.row<float>(row);
      for (std::int64_t head = 0; head < heads.heads; ++head) {
        kernels.rotate(heads.at(row, head), cosines, cosines + frequencies, frequencies);
      }
    }
  });
}

Tensor CpuOps::prepare_attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& q_norm,
                                 const Tensor& k_norm, float eps, const Rope& rope, const KvView& cache,
                                 const BatchView& batch) {
  const HeadRows queries(q), keys(k);
  const std::int64_t n = queries.n;
  const std::int64_t frequencies = rope.inverse_frequencies.elements();
  CHECK(q.rank() == 3 && k.rank() == 3 && queries.rows == batch.rows() && keys.rows == batch.rows() && keys.n == n &&
            q_norm.elements() == n && k_norm.elements() == n && 2 * frequencies <= n,
        "queries {}, keys {}, norms of {} and {}, {} frequencies", q.shape().to_string(), k.shape().to_string(),
        q_norm.elements(), k_norm.elements(), frequencies);
  const Tensor prepared = allocate(DType::f32, q.shape());
  const Scope scope(*this);
  const Tensor prepared_keys = allocate(DType::f32, k.shape());
  const Tensor turns = angles(*this, pool_, batch, rope);
  const RowKernels& kernels = row_kernels(instruction_set_);
  const auto prepare = [&](const HeadRows& in, const HeadRows& out, const Tensor& norm, std::int64_t row) {
    const float* cosines = turns.row<float>(row);
    for (std::int64_t head = 0; head < in.heads; ++head) {
      kernels.rms_norm(out.at(row, head), in.at(row, head), norm.as<float>(), eps, n);
      kernels.rotate(out.at(row, head), cosines, cosines + frequencies, frequencies);
    }
  };
  const HeadRows queries_out(prepared), keys_out(prepared_keys);
  pool_.parallel_for(queries.rows, grain_of_rows((queries.heads + keys.heads) * n),
                     [&](std::int64_t begin, std::int64_t end) {
                       for (std::int64_t row = begin; row < end; ++row) {
                         prepare(queries, queries_out, q_norm, row);
                         prepare(keys, keys_out, k_norm, row);
                       }
                     });
  append_kv(prepared_keys, v, cache, batch);
  return prepared;
}

}  // namespace sluice
