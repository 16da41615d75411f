#pragma once
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "models/model.h"
#include "models/qwen3_5_blocks.h"
#include "models/qwen3_5_config.h"
#include "models/qwen3_5_mtp.h"

namespace sluice {

/// Qwen3.5 / 3.6 / 3.8, dense and MoE: one residual stream through delta nets and, every few layers, full attention.
class Qwen3_5 final : public Model {
 public:
  /// Loads all tensors of the checkpoint and checks that none is left.
  Qwen3_5(const Qwen3_5Config& config, const WeightScope& root);

  const ModelInfo& info() const override { return info_; }
  CacheNeeds cache_needs() const override;
  ForwardResult forward(Ops& ops, const BatchView& batch, const LayerCaches& caches,
                        const LayerObserver& observe) override;
  ForwardResult draft(Ops& ops, const BatchView& batch, const Tensor& hidden, const LayerCaches& caches) override;
  std::uint64_t bytes_per_token() const override;

 private:
  struct Layer {
    Tensor input_norm, mlp_norm;
    std::variant<FullAttention, DeltaNet> mixer;
    Mlp mlp;
    std::size_t cache = 0;  // index among the caches of its kind
  };

  void load_layers(const WeightScope& scope);
  void load_head(const WeightScope& root, const WeightScope& text);
  void load_vision(const WeightScope& root);
  Tensor logits(Ops& ops, const Tensor& hidden, const BatchView& batch) const;

  Qwen3_5Config config_;
  ModelInfo info_;
  WeightPtr embedding_, head_;  // the same weight where tied
  std::vector<Layer> layers_;
  Tensor final_norm_;
  Rope rope_;
  std::optional<Qwen3_5Mtp> mtp_;
};

}  // namespace sluice
