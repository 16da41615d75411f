#include "ops/ops.h"

namespace sluice {

void Ops::step(std::int64_t, const std::function<void()>& body) { body(); }

Tensor Ops::add_rms_norm(const Tensor& residual, const Tensor& x, const Tensor& weight, float eps) {
  add_to(residual, x);
  return rms_norm(residual, weight, eps);
}

Tensor Ops::prepare_attention(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& q_norm,
                              const Tensor& k_norm, float eps, const Rope& rope_table, const KvView& cache,
                              const BatchView& batch) {
  const Tensor queries = rms_norm(q, q_norm, eps);
  const Tensor keys = rms_norm(k, k_norm, eps);
  rope(queries, batch, rope_table);
  rope(keys, batch, rope_table);
  append_kv(keys, v, cache, batch);
  return queries;
}

Tensor Ops::mlp(const Tensor& x, const Weight& gate_up, const Weight& down) {
  return linear(silu_mul(linear(x, gate_up)), down);
}

}  // namespace sluice
