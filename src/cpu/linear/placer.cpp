#include "cpu/linear/placer.h"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace sluice {

namespace {

/// Memory comes in large pieces that only become real where they are written: no weight is rounded up to whole pages.
constexpr std::size_t slab_bytes = std::size_t{256} << 20;

}  // namespace

std::byte* CpuPlacer::take(std::size_t bytes) {
  const std::size_t rounded = (bytes + 63) / 64 * 64;
  if (!slab_ || used_ + rounded > slab_->bytes()) {
    slab_ = std::make_shared<const Buffer>(host_buffer(std::max(rounded, slab_bytes)));
    slabs_.push_back(slab_);
    used_ = 0;
  }
  auto* data = static_cast<std::byte*>(slab_->data()) + used_;
  used_ += rounded;
  return data;
}

CpuPlacer::Placed CpuPlacer::place_stacks(std::span<const std::vector<SourceMatrix>> stacks) {
  Placed placed;
  for (const SegmentPlan& plan : plan_segments(stacks)) {
    const std::size_t bytes = plan.panels.bytes();
    std::byte* data = take(stacks.size() * bytes);
    placed.slabs.push_back(slab_);
    for (std::size_t i = 0; i < stacks.size(); ++i) {
      repack(pool_, std::span(stacks[i]).subspan(plan.first_part, plan.parts), plan.panels, plan.orders[i],
             data + i * bytes);
    }
    const std::int32_t* orders = place_orders(plan);
    if (placed.slabs.back() != slab_) placed.slabs.push_back(slab_);  // the orders may lie in a new one
    placed.segments.push_back({plan.panels, data, placed.rows, orders});
    placed.rows += plan.panels.out;
  }
  return placed;
}

const std::int32_t* CpuPlacer::place_orders(const SegmentPlan& plan) {
  if (!plan.has_orders()) return nullptr;
  std::vector<std::int32_t> all;
  for (std::vector<std::int32_t> order : plan.orders) {
    if (order.empty()) {
      order.resize(static_cast<std::size_t>(plan.panels.in));
      std::iota(order.begin(), order.end(), 0);
    }
    all.insert(all.end(), order.begin(), order.end());
  }
  return place_indices(all).as<std::int32_t>();
}

WeightPtr CpuPlacer::place(std::span<const SourceMatrix> parts) {
  const std::vector<SourceMatrix> stack(parts.begin(), parts.end());
  Placed placed = place_stacks({&stack, 1});
  return std::make_shared<CpuWeight>(placed.rows, stack.front().in, std::move(placed.segments),
                                     std::move(placed.slabs));
}

ExpertWeightsPtr CpuPlacer::place_experts(const std::vector<std::vector<SourceMatrix>>& parts) {
  Placed placed = place_stacks(parts);
  return std::make_shared<CpuExpertWeights>(static_cast<std::int64_t>(parts.size()), placed.rows,
                                            parts.front().front().in, std::move(placed.segments),
                                            std::move(placed.slabs));
}

Tensor CpuPlacer::place_vector(std::span<const float> values, const Shape& shape) {
  CHECK(shape.elements() == static_cast<std::int64_t>(values.size()), "{} values for {}", values.size(),
        shape.to_string());
  std::byte* data = take(values.size_bytes());
  if (!values.empty()) std::memcpy(data, values.data(), values.size_bytes());
  return Tensor(data, DType::f32, shape);
}

Tensor CpuPlacer::place_indices(std::span<const std::int32_t> values) {
  std::byte* data = take(values.size_bytes());
  if (!values.empty()) std::memcpy(data, values.data(), values.size_bytes());
  return Tensor(data, DType::i32, {static_cast<std::int64_t>(values.size())});
}

}  // namespace sluice
