#pragma once
// The operations written down plainly, in float64.
#include <cmath>
#include <vector>

#include "tensor/tensor.h"

namespace sluice::reference {

using Row = std::vector<double>;

inline double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }
inline double silu(double x) { return x * sigmoid(x); }

inline Row rms_norm(const Row& x, const float* weight, double eps) {
  double sum = 0.0;
  for (const double value : x) sum += value * value;
  Row out(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    out[i] = x[i] / std::sqrt(sum / static_cast<double>(x.size()) + eps) * static_cast<double>(weight[i]);
  }
  return out;
}

inline Row row_of(const float* x, std::int64_t n) { return Row(x, x + n); }

/// Softmax attention of one query over the first `count` keys.
inline Row attention(const Row& q, const std::vector<Row>& keys, const std::vector<Row>& values, std::size_t count,
                     double scale) {
  Row scores(count);
  double highest = -1e300, total = 0.0;
  for (std::size_t j = 0; j < count; ++j) {
    for (std::size_t d = 0; d < q.size(); ++d) scores[j] += q[d] * keys[j][d] * scale;
    highest = std::max(highest, scores[j]);
  }
  for (double& score : scores) total += score = std::exp(score - highest);
  Row out(values[0].size());
  for (std::size_t j = 0; j < count; ++j) {
    for (std::size_t d = 0; d < out.size(); ++d) out[d] += scores[j] / total * values[j][d];
  }
  return out;
}

/// One token of the gated delta rule; q and k as they come, state [key_dim, value_dim].
inline Row delta_step(std::vector<Row>& state, const Row& q, const Row& k, const Row& v, double g, double beta) {
  const auto inverse_length = [](const Row& x) {
    double sum = 0.0;
    for (const double value : x) sum += value * value;
    return 1.0 / std::sqrt(sum + 1e-6);
  };
  const double key_factor = inverse_length(k);
  const double query_factor = inverse_length(q) / std::sqrt(static_cast<double>(q.size()));
  Row read(v.size()), out(v.size());
  for (std::size_t r = 0; r < k.size(); ++r) {
    for (std::size_t c = 0; c < v.size(); ++c) {
      state[r][c] *= std::exp(g);
      read[c] += state[r][c] * k[r] * key_factor;
    }
  }
  for (std::size_t r = 0; r < k.size(); ++r) {
    for (std::size_t c = 0; c < v.size(); ++c) {
      state[r][c] += k[r] * key_factor * (v[c] - read[c]) * beta;
      out[c] += state[r][c] * q[r] * query_factor;
    }
  }
  return out;
}

}  // namespace sluice::reference
