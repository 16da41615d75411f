#pragma once
#include <cstdint>
#include <optional>
#include <variant>

#include "models/qwen3_5_config.h"
#include "ops/ops.h"
#include "weights/scope.h"

namespace sluice {

/// A norm of the decoder, which multiplies by 1 + w; the checkpoint says whether it holds that or w.
Tensor load_norm(const WeightScope& scope, std::string_view name, std::int64_t size);

/// Gated full attention: head norms on q and k, partial rotary embedding, output times sigmoid(gate).
class FullAttention {
 public:
  FullAttention(const WeightScope& scope, const Qwen3_5Config& config);
  /// x [rows, hidden] -> [rows, hidden]; appends to the cache.
  Tensor operator()(Ops& ops, const Tensor& x, const Rope& rope, const KvView& cache, const BatchView& batch) const;
  std::uint64_t bytes() const { return qkv_->bytes() + output_->bytes(); }

 private:
  std::int64_t heads_, kv_heads_, head_dim_;
  bool gated_;
  float eps_;
  WeightPtr qkv_, output_;  // qkv rows: per head query (then gate), then all k, then all v
  Tensor q_norm_, k_norm_;
  std::optional<Tensor> qkv_bias_, output_bias_;
};

/// Gated DeltaNet (arXiv 2412.06464): short convolution, delta rule with decay, gated norm.
class DeltaNet {
 public:
  DeltaNet(const WeightScope& scope, const Qwen3_5Config& config);
  /// x [rows, hidden] -> [rows, hidden]; reads and replaces the state.
  Tensor operator()(Ops& ops, const Tensor& x, const StateView& state, const BatchView& batch) const;
  std::uint64_t bytes() const { return qkvz_->bytes() + ba_->bytes() + output_->bytes(); }

 private:
  std::int64_t key_heads_, value_heads_, key_dim_, value_dim_;
  HeadMap head_map_;
  GateActivation gate_;
  float eps_;
  WeightPtr qkvz_, ba_, output_;  // qkvz rows: all q, all k, all v, all z; ba rows: all b, all a
  Tensor conv_, decay_, dt_bias_, norm_;
};

/// down(silu(gate) * up).
class DenseMlp {
 public:
  DenseMlp(const WeightScope& scope, std::int64_t hidden, std::int64_t intermediate);
  Tensor operator()(Ops& ops, const Tensor& x) const { return ops.mlp(x, *gate_up_, *down_); }
  std::uint64_t bytes() const { return gate_up_->bytes() + down_->bytes(); }

 private:
  WeightPtr gate_up_, down_;
};

/// Top-k experts, and beside them one shared expert behind a sigmoid gate.
class SparseMlp {
 public:
  SparseMlp(const WeightScope& scope, const Qwen3_5Config& config);
  Tensor operator()(Ops& ops, const Tensor& x) const;
  /// Of what one token reads.
  std::uint64_t bytes() const;

 private:
  std::int64_t experts_per_token_;
  WeightPtr router_, shared_gate_;
  ExpertWeightsPtr gate_up_, down_;
  std::optional<DenseMlp> shared_;
};

using Mlp = std::variant<DenseMlp, SparseMlp>;

/// Either kind of MLP, as the config says for the layer.
Mlp load_mlp(const WeightScope& scope, const Qwen3_5Config& config, bool dense);

}  // namespace sluice
