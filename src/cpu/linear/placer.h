#pragma once
#include <memory>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "cpu/linear/repack.h"
#include "weights/weight.h"

namespace sluice {

/// Repacks matrices into panels, in parallel. Every stored form keeps its size: numbers stay what they are, and codes
/// and blocks are multiplied from what they are stored as.
class CpuPlacer final : public Placer {
 public:
  /// The pool must outlive the placer.
  explicit CpuPlacer(ThreadPool& pool) : pool_(pool) {}

  WeightPtr place(std::span<const SourceMatrix> parts) override;
  ExpertWeightsPtr place_experts(const std::vector<std::vector<SourceMatrix>>& parts) override;
  Tensor place_vector(std::span<const float> values, const Shape& shape) override;
  Tensor place_indices(std::span<const std::int32_t> values) override;

 private:
  /// Segments of a stack of rows, and what keeps them.
  struct Placed {
    std::vector<Segment> segments;
    CpuWeight::Slabs slabs;
    std::int64_t rows = 0;
  };
  Placed place_stacks(std::span<const std::vector<SourceMatrix>> stacks);
  /// Orders of a segment, one stack after another; null if all columns are as they are.
  const std::int32_t* place_orders(const SegmentPlan& plan);
  /// Bytes of the current slab, aligned to 64 and zeroed.
  std::byte* take(std::size_t bytes);

  ThreadPool& pool_;
  std::shared_ptr<const Buffer> slab_;  // where the last bytes were taken
  std::vector<std::shared_ptr<const Buffer>> slabs_;
  std::size_t used_ = 0;
};

}  // namespace sluice
