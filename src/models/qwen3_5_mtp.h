#pragma once
#include "models/qwen3_5_blocks.h"

namespace sluice {

/// The multi-token-prediction head: from the hidden row at t and the token at t + 1, the hidden row that predicts t
/// + 2. Embedding and head are the target's.
class Qwen3_5Mtp {
 public:
  Qwen3_5Mtp(const WeightScope& scope, const Qwen3_5Config& config);
  /// embedded and hidden: [rows, hidden]; the result is after the head's own norm.
  Tensor operator()(Ops& ops, const Tensor& embedded, const Tensor& hidden, const Rope& rope, const KvView& cache,
                    const BatchView& batch) const;

 private:
  float eps_;
  Tensor embedding_norm_, hidden_norm_, input_norm_, mlp_norm_, final_norm_;
  WeightPtr join_;
  FullAttention attention_;
  Mlp mlp_;
};

}  // namespace sluice
