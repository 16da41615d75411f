#pragma once
#include <deque>
#include <string>
#include <vector>

#include "weights/audit_placer.h"

namespace sluice {

/// A matrix that a model asked for, as its checkpoint stores it.
struct ListedMatrix {
  SourceMatrix source;
  std::int64_t stack = 0;  // equal for those that the model stacks into one

  /// Its name in the checkpoint, without what says how it is stored (".weight", ".qweight").
  std::string name() const;
};

/// Notes which matrices a model asks for and reads none of them.
class MatrixLister final : public AuditPlacer {
 public:
  WeightPtr place(std::span<const SourceMatrix> parts) override;
  ExpertWeightsPtr place_experts(const std::vector<std::vector<SourceMatrix>>& parts) override;

  const std::vector<ListedMatrix>& matrices() const { return matrices_; }
  /// Tensors that the matrices refer to and the checkpoint does not have: single experts of one of all.
  std::deque<StoredTensor> take_slices() { return std::move(slices_); }

 private:
  void note(std::span<const SourceMatrix> parts);
  /// The same tensor for longer than the call that it came with.
  const StoredTensor* keep(const StoredPart& part);

  std::vector<ListedMatrix> matrices_;
  std::deque<StoredTensor> slices_;
  std::int64_t stacks_ = 0;
};

}  // namespace sluice
