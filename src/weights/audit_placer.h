#pragma once
#include <deque>
#include <vector>

#include "weights/weight.h"

namespace sluice {

/// Takes matrices in by their shapes alone and reads none of them: for asking whether a checkpoint is complete.
class AuditPlacer : public Placer {
 public:
  WeightPtr place(std::span<const SourceMatrix> parts) override;
  ExpertWeightsPtr place_experts(const std::vector<std::vector<SourceMatrix>>& parts) override;
  Tensor place_vector(std::span<const float> values, const Shape& shape) override;
  Tensor place_indices(std::span<const std::int32_t> values) override;

 private:
  std::deque<std::vector<float>> vectors_;
  std::deque<std::vector<std::int32_t>> indices_;
};

}  // namespace sluice
