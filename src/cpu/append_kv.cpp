#include <cstring>

#include "cpu/batch_rows.h"
#include "cpu/cpu_ops.h"
#include "cpu/rows.h"
#include "cpu/simd/row_kernels.h"

namespace sluice {

namespace {

/// Writes one head of one row to `cache` at `offset`.
void append(const RowKernels& kernels, const Tensor& cache, std::int64_t offset, const float* x, std::int64_t n) {
  if (cache.dtype() == DType::f32) {
    std::memcpy(cache.as<float>() + offset, x, static_cast<std::size_t>(n) * sizeof(float));
  } else {
    kernels.to_bf16(cache.as<std::uint16_t>() + offset, x, n);
  }
}

}  // namespace

void CpuOps::append_kv(const Tensor& k, const Tensor& v, const KvView& cache, const BatchView& batch) {
  const HeadRows keys(k), values(v);
  CHECK(k.rank() == 3 && k.shape() == v.shape() && keys.rows == batch.rows(), "{} and {} for {} rows",
        k.shape().to_string(), v.shape().to_string(), batch.rows());
  check_cache(cache, keys.heads, keys.n);
  const RowKernels& kernels = row_kernels(instruction_set_);
  for (std::int64_t s = 0; s < batch.sequences(); ++s) {
    const SequenceRows rows = sequence_rows(batch, s);
    const SequenceBlocks blocks(cache, batch, s);
    for (std::int64_t i = 0; i < rows.count; ++i) {
      for (std::int64_t head = 0; head < keys.heads; ++head) {
        const std::int64_t offset = blocks.offset(rows.context + i, head);
        append(kernels, cache.keys, offset, keys.at(rows.first + i, head), keys.n);
        append(kernels, cache.values, offset, values.at(rows.first + i, head), keys.n);
      }
    }
  }
}

}  // namespace sluice
