#pragma once
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "cpu/linear/panels.h"

namespace sluice {

/// Neighbours of a stack that go into one segment.
struct SegmentPlan {
  Panels panels;
  std::size_t first_part = 0, parts = 0;
  std::vector<std::vector<std::int32_t>> orders;  // SourceMatrix::input_order() of the neighbours in each stack

  bool has_orders() const;
};

/// The panels that hold these stacked parts without loss, none larger than what is stored by more than its padding:
/// numbers stay what they are, codes and blocks are computed from. All stacks are cut alike. Throws LoadError for a
/// stack whose parts are stored in another form than the first one's.
std::vector<SegmentPlan> plan_segments(std::span<const std::vector<SourceMatrix>> stacks);

/// Writes stacked parts, whose columns are in this order, as panels.bytes() bytes to `data`, which is zero before.
void repack(ThreadPool& pool, std::span<const SourceMatrix> parts, const Panels& panels,
            std::span<const std::int32_t> order, std::byte* data);

}  // namespace sluice
