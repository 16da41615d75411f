#include "models/qwen3_5_mtp.h"

namespace sluice {

Qwen3_5Mtp::Qwen3_5Mtp(const WeightScope& scope, const Qwen3_5Config& config)
    : eps_(config.rms_norm_eps),
      embedding_norm_(load_norm(scope, "pre_fc_norm_embedding.weight", config.hidden_size)),
      hidden_norm_(load_norm(scope, "pre_fc_norm_hidden.weight", config.hidden_size)),
      input_norm_(load_norm(scope, "layers.0.input_layernorm.weight", config.hidden_size)),
      mlp_norm_(load_norm(scope, "layers.0.post_attention_layernorm.weight", config.hidden_size)),
      final_norm_(load_norm(scope, "norm.weight", config.hidden_size)),
      join_(scope.matrix("fc", config.hidden_size, 2 * config.hidden_size)),
      attention_(scope.at("layers.0.self_attn"), config),
      mlp_(load_mlp(scope.at("layers.0.mlp"), config, config.experts == 0)) {}

Tensor Qwen3_5Mtp::operator()(Ops& ops, const Tensor& embedded, const Tensor& hidden, const Rope& rope,
                              const KvView& cache, const BatchView& batch) const {
  const Tensor joined =
      ops.concat_columns(ops.rms_norm(embedded, embedding_norm_, eps_), ops.rms_norm(hidden, hidden_norm_, eps_));
  const Tensor residual = ops.linear(joined, *join_);
  const Tensor mixed = attention_(ops, ops.rms_norm(residual, input_norm_, eps_), rope, cache, batch);
  const Tensor x = ops.add_rms_norm(residual, mixed, mlp_norm_, eps_);
  ops.add_to(residual, std::visit([&](const auto& mlp) { return mlp(ops, x); }, mlp_));
  return ops.rms_norm(residual, final_norm_, eps_);
}

}  // namespace sluice
