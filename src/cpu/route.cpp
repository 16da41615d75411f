#include <cmath>

#include "cpu/cpu_ops.h"
#include "cpu/rows.h"

namespace sluice {

namespace {

/// The k best of `experts` logits by their softmax; the softmax's denominator cancels in the renormalization, but not
/// its rounding, so it is taken.
void route_row(const float* logits, std::int64_t experts, std::int64_t k, float* probabilities, std::int32_t* chosen,
               float* weights) {
  const float highest = *std::max_element(logits, logits + experts);
  float sum = 0.0f;
  for (std::int64_t e = 0; e < experts; ++e) sum += probabilities[e] = std::exp(logits[e] - highest);
  for (std::int64_t e = 0; e < experts; ++e) probabilities[e] /= sum;
  float total = 0.0f;
  for (std::int64_t i = 0; i < k; ++i) {
    std::int64_t best = 0;
    for (std::int64_t e = 1; e < experts; ++e) {
      if (probabilities[e] > probabilities[best]) best = e;
    }
    chosen[i] = static_cast<std::int32_t>(best);
    total += weights[i] = probabilities[best];
    probabilities[best] = -1.0f;
  }
  for (std::int64_t i = 0; i < k; ++i) weights[i] /= total;
}

}  // namespace

Routing CpuOps::route(const Tensor& logits, std::int64_t k) {
  const HeadRows in(logits);
  CHECK(logits.rank() == 2 && k >= 1 && k <= in.n, "{} of {}", k, logits.shape().to_string());
  const Routing routing{allocate(DType::i32, {in.rows, k}), allocate(DType::f32, {in.rows, k})};
  const Scope scope(*this);
  const Tensor scratch = allocate(DType::f32, {in.rows, in.n});
  pool_.parallel_for(in.rows, grain_of_rows(in.n * (k + 4)), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      route_row(in.at(row), in.n, k, scratch.row<float>(row), routing.experts.row<std::int32_t>(row),
                routing.weights.row<float>(row));
    }
  });
  return routing;
}

}  // namespace sluice
