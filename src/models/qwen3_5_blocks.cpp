#include "models/qwen3_5_blocks.h"

#include <cmath>

#include "models/qwen3_5_parts.h"

namespace sluice {

Tensor load_norm(const WeightScope& scope, std::string_view name, std::int64_t size) {
  if (scope.checkpoint().conventions().norms_hold_scale) return scope.vector(name, {size});
  return scope.vector(name, {size}, [](float w) { return 1.0f + w; });
}

FullAttention::FullAttention(const WeightScope& scope, const Qwen3_5Config& config)
    : heads_(config.heads),
      kv_heads_(config.kv_heads),
      head_dim_(config.head_dim),
      gated_(config.attn_output_gate),
      eps_(config.rms_norm_eps) {
  const std::int64_t q_rows = heads_ * head_dim_ * (gated_ ? 2 : 1);
  const std::int64_t kv_rows = kv_heads_ * head_dim_;
  qkv_ = scope.stacked({{"q_proj", q_rows}, {"k_proj", kv_rows}, {"v_proj", kv_rows}}, config.hidden_size);
  output_ = scope.matrix("o_proj", config.hidden_size, heads_ * head_dim_);
  q_norm_ = load_norm(scope, "q_norm.weight", head_dim_);
  k_norm_ = load_norm(scope, "k_norm.weight", head_dim_);
  for (const std::string_view name : kv_scales) {
    if (scope.has(name)) scope.skip(name, "for an 8-bit KV cache; this one keeps 16 bits or more");
  }
  if (!config.attention_bias) return;
  std::vector<float> bias = scope.values("q_proj.bias", {q_rows});
  for (const char* name : {"k_proj.bias", "v_proj.bias"}) {
    const std::vector<float> part = scope.values(name, {kv_rows});
    bias.insert(bias.end(), part.begin(), part.end());
  }
  qkv_bias_ = scope.placer().place_vector(bias, {static_cast<std::int64_t>(bias.size())});
  output_bias_ = scope.vector("o_proj.bias", {config.hidden_size});
}

Tensor FullAttention::operator()(Ops& ops, const Tensor& x, const Rope& rope, const KvView& cache,
                                 const BatchView& batch) const {
  const std::int64_t per_head = head_dim_ * (gated_ ? 2 : 1);
  const std::int64_t q_rows = heads_ * per_head;
  const std::int64_t kv_rows = kv_heads_ * head_dim_;
  const Tensor qkv = ops.linear(x, *qkv_);
  if (qkv_bias_) ops.add_bias(qkv, *qkv_bias_);
  const Tensor q_and_gate = qkv.slice(1, 0, q_rows).split_columns(heads_, per_head);
  const Tensor q = q_and_gate.slice(2, 0, head_dim_);
  const Tensor k = qkv.slice(1, q_rows, kv_rows).split_columns(kv_heads_, head_dim_);
  const Tensor v = qkv.slice(1, q_rows + kv_rows, kv_rows).split_columns(kv_heads_, head_dim_);

  const Tensor queries = ops.prepare_attention(q, k, v, q_norm_, k_norm_, eps_, rope, cache, batch);
  const Tensor mixed = ops.attention(queries, cache, batch, 1.0f / std::sqrt(static_cast<float>(head_dim_)));
  if (gated_) ops.sigmoid_mul(mixed.split_columns(heads_, head_dim_), q_and_gate.slice(2, head_dim_, head_dim_));
  const Tensor output = ops.linear(mixed, *output_);
  if (output_bias_) ops.add_bias(output, *output_bias_);
  return output;
}

DeltaNet::DeltaNet(const WeightScope& scope, const Qwen3_5Config& config)
    : key_heads_(config.key_heads),
      value_heads_(config.value_heads),
      key_dim_(config.key_dim),
      value_dim_(config.value_dim),
      head_map_(scope.checkpoint().conventions().value_heads_tiled ? HeadMap::tiled : HeadMap::grouped),
      gate_(config.output_gate),
      eps_(config.rms_norm_eps) {
  const std::int64_t hidden = config.hidden_size;
  const std::int64_t channels = config.conv_channels();
  const std::int64_t value_rows = value_heads_ * value_dim_;
  qkvz_ = scope.has("in_proj_qkvz") ? scope.matrix("in_proj_qkvz", channels + value_rows, hidden)
                                    : scope.stacked({{"in_proj_qkv", channels}, {"in_proj_z", value_rows}}, hidden);
  ba_ = scope.has("in_proj_ba") ? scope.matrix("in_proj_ba", 2 * value_heads_, hidden)
                                : scope.stacked({{"in_proj_b", value_heads_}, {"in_proj_a", value_heads_}}, hidden);
  output_ = scope.matrix("out_proj", hidden, value_rows);
  conv_ = scope.vector("conv1d.weight", {channels, 1, config.conv_taps}).reshaped({channels, config.conv_taps});
  decay_ = scope.checkpoint().conventions().decay_ready
               ? scope.vector("A_log", {value_heads_})
               : scope.vector("A_log", {value_heads_}, [](float a_log) { return -std::exp(a_log); });
  dt_bias_ = scope.vector("dt_bias", {value_heads_});
  norm_ = scope.vector("norm.weight", {value_dim_});
}

Tensor DeltaNet::operator()(Ops& ops, const Tensor& x, const StateView& state, const BatchView& batch) const {
  const std::int64_t key_columns = key_heads_ * key_dim_;
  const std::int64_t value_columns = value_heads_ * value_dim_;
  const std::int64_t channels = 2 * key_columns + value_columns;
  const Tensor qkvz = ops.linear(x, *qkvz_);
  const auto [g, beta] = ops.delta_gates(ops.linear(x, *ba_), decay_, dt_bias_);
  const Tensor z = qkvz.slice(1, channels, value_columns).split_columns(value_heads_, value_dim_);

  const Tensor qkv = ops.causal_conv(qkvz.slice(1, 0, channels), conv_, state, batch);
  const Tensor q = qkv.slice(1, 0, key_columns).split_columns(key_heads_, key_dim_);
  const Tensor k = qkv.slice(1, key_columns, key_columns).split_columns(key_heads_, key_dim_);
  const Tensor v = qkv.slice(1, 2 * key_columns, value_columns).split_columns(value_heads_, value_dim_);
  const Tensor mixed = ops.delta_rule(q, k, v, g, beta, head_map_, state, batch);
  return ops.linear(ops.gated_rms_norm(mixed, z, norm_, eps_, gate_), *output_);
}

DenseMlp::DenseMlp(const WeightScope& scope, std::int64_t hidden, std::int64_t intermediate)
    : gate_up_(scope.stacked({{"gate_proj", intermediate}, {"up_proj", intermediate}}, hidden)),
      down_(scope.matrix("down_proj", hidden, intermediate)) {}

SparseMlp::SparseMlp(const WeightScope& scope, const Qwen3_5Config& config)
    : experts_per_token_(config.experts_per_token) {
  const std::int64_t hidden = config.hidden_size;
  const std::int64_t intermediate = config.moe_intermediate_size;
  router_ = scope.matrix("gate", config.experts, hidden);
  const WeightScope experts = scope.at("experts");
  gate_up_ =
      experts.experts("gate_up_proj", {{"gate_proj", intermediate}, {"up_proj", intermediate}}, config.experts, hidden);
  down_ = experts.experts("down_proj", {{"down_proj", hidden}}, config.experts, intermediate);
  if (config.shared_expert_intermediate_size == 0) return;
  shared_.emplace(scope.at("shared_expert"), hidden, config.shared_expert_intermediate_size);
  shared_gate_ = scope.matrix("shared_expert_gate", 1, hidden);
}

Tensor SparseMlp::operator()(Ops& ops, const Tensor& x) const {
  const Routing routing = ops.route(ops.linear_f32(x, *router_), experts_per_token_);
  const Tensor y = ops.experts(x, routing, *gate_up_, *down_);
  if (shared_) ops.add_gated(y, (*shared_)(ops, x), ops.linear_f32(x, *shared_gate_));
  return y;
}

std::uint64_t SparseMlp::bytes() const {
  const auto experts = static_cast<std::uint64_t>(gate_up_->experts());
  const auto used = static_cast<std::uint64_t>(experts_per_token_);
  return router_->bytes() + (gate_up_->bytes() + down_->bytes()) / experts * used +
         (shared_ ? shared_->bytes() + shared_gate_->bytes() : 0);
}

Mlp load_mlp(const WeightScope& scope, const Qwen3_5Config& config, bool dense) {
  if (dense) return DenseMlp(scope, config.hidden_size, config.intermediate_size);
  return SparseMlp(scope, config);
}

}  // namespace sluice
