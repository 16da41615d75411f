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
};

/// The panels that hold these stacked parts without loss, none larger than what is stored by more than its padding:
/// numbers stay what they are, codes and blocks are computed from.
std::vector<SegmentPlan> plan_segments(std::span<const SourceMatrix> parts);

/// Writes stacked parts as panels.bytes() bytes to `data`, which is zero before.
void repack(ThreadPool& pool, std::span<const SourceMatrix> parts, const Panels& panels, std::byte* data);

}  // namespace sluice
