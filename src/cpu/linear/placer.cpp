#include "cpu/linear/placer.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "cpu/linear/repack.h"

namespace sluice {

namespace {

/// Memory comes in large pieces that only become real where they are written: no weight is rounded up to whole pages.
constexpr std::size_t slab_bytes = std::size_t{256} << 20;

/// The experts of a layer are computed together, and so stored alike.
void check_same_form(const std::vector<SegmentPlan>& plans, std::span<const SourceMatrix> expert) {
  const std::vector<SegmentPlan> own = plan_segments(expert);
  for (std::size_t i = 0; i < plans.size(); ++i) {
    if (own.size() == plans.size() && own[i].panels.same_form(plans[i].panels) &&
        own[i].panels.out == plans[i].panels.out) {
      continue;
    }
    const StoredTensor& tensor = expert[std::min(i, expert.size() - 1)].values();
    fail<LoadError>(
        "{}: tensor \"{}\" ({} {}) is stored in another form than the same matrix of the layer's first expert",
        tensor.source, tensor.name, tensor.type_name(), tensor.shape_text());
  }
}

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

WeightPtr CpuPlacer::place(std::span<const SourceMatrix> parts) {
  std::vector<Segment> segments;
  CpuWeight::Slabs slabs;
  std::int64_t rows = 0;
  for (const SegmentPlan& plan : plan_segments(parts)) {
    std::byte* data = take(plan.panels.bytes());
    repack(pool_, parts.subspan(plan.first_part, plan.parts), plan.panels, data);
    segments.push_back({plan.panels, data, rows});
    slabs.push_back(slab_);
    rows += plan.panels.out;
  }
  return std::make_shared<CpuWeight>(rows, parts.front().in, std::move(segments), std::move(slabs));
}

ExpertWeightsPtr CpuPlacer::place_experts(const std::vector<std::vector<SourceMatrix>>& parts) {
  CHECK(!parts.empty());
  const std::vector<SegmentPlan> plans = plan_segments(parts.front());
  for (const auto& expert : parts) check_same_form(plans, expert);
  std::vector<Segment> segments;
  CpuWeight::Slabs slabs;
  std::int64_t rows = 0;
  for (const SegmentPlan& plan : plans) {
    std::byte* data = take(parts.size() * plan.panels.bytes());
    for (std::size_t expert = 0; expert < parts.size(); ++expert) {
      repack(pool_, std::span(parts[expert]).subspan(plan.first_part, plan.parts), plan.panels,
             data + expert * plan.panels.bytes());
    }
    segments.push_back({plan.panels, data, rows});
    slabs.push_back(slab_);
    rows += plan.panels.out;
  }
  return std::make_shared<CpuExpertWeights>(static_cast<std::int64_t>(parts.size()), rows, parts.front().front().in,
                                            std::move(segments), std::move(slabs));
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
