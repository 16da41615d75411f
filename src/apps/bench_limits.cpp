#include "apps/bench_limits.h"

#include <algorithm>

#include "tensor/dtype.h"

namespace sluice {

BenchLimits::BenchLimits(const MachineRates& rates, const ModelSizes& sizes, const CacheNeeds& needs, const Ops& ops,
                         const Model& model)
    : rates_(rates), sizes_(sizes) {
  const double parameters = sizes.product_operations() / 2.0 + sizes.head_parameters;
  bytes_per_parameter_ = static_cast<double>(model.bytes_per_token()) / parameters;
  kv_bytes_per_token_ = static_cast<double>(needs.kv_layers * 2 * needs.kv_heads * needs.head_dim) *
                        static_cast<double>(size_of(ops.kv_dtype()));
}

double BenchLimits::phase(double bytes, double operations, double peak) const {
  return std::max(bytes / rates_.read_bandwidth, operations / peak);
}

double BenchLimits::decode(double batch, double context) const {
  const double expert_bytes =
      sizes_.expert_layers * sizes_.experts_read(batch) * sizes_.expert_parameters * bytes_per_parameter_;
  const double expert_operations = 2.0 * sizes_.expert_layers * sizes_.experts_per_token * sizes_.expert_parameters;
  const double seconds =
      phase(sizes_.dense_parameters * bytes_per_parameter_, 2.0 * batch * sizes_.dense_parameters,
            rates_.product_peak) +
      phase(expert_bytes, batch * expert_operations, rates_.product_peak) +
      phase(sizes_.head_parameters * bytes_per_parameter_, 2.0 * batch * sizes_.head_parameters, rates_.product_peak) +
      phase(batch * 2.0 * sizes_.state_bytes, batch * sizes_.delta_per_token, rates_.float_peak) +
      phase(batch * context * kv_bytes_per_token_, batch * context * sizes_.attention_per_position, rates_.float_peak);
  return batch / seconds;
}

double BenchLimits::prefill(double tokens) const {
  const double positions = tokens * (tokens + 1.0) / 2.0;
  const double products = tokens * sizes_.product_operations() + 2.0 * sizes_.head_parameters;
  const double others = tokens * sizes_.delta_per_token + positions * sizes_.attention_per_position;
  return tokens / (products / rates_.product_peak + others / rates_.float_peak);
}

}  // namespace sluice
