#include "cpu/linear/placer.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "cpu/linear/repack.h"

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

WeightPtr CpuPlacer::place(std::span<const SourceMatrix> parts) {
  const Panels panels = panels_for(parts);
  std::byte* data = take(panels.bytes());
  repack(pool_, parts, panels, data);
  return std::make_shared<CpuWeight>(panels, data, slab_);
}

ExpertWeightsPtr CpuPlacer::place_experts(const std::vector<std::vector<SourceMatrix>>& parts) {
  CHECK(!parts.empty());
  Panels panels = panels_for(parts.front());
  for (const auto& expert : parts) {
    const Panels own = panels_for(expert);
    CHECK(own.out == panels.out && own.in == panels.in, "experts of shapes [{}, {}] and [{}, {}]", panels.out,
          panels.in, own.out, own.in);
    if (own.layout != panels.layout) panels.layout = Layout::f32_panels;
  }
  std::byte* data = take(parts.size() * panels.bytes());
  for (std::size_t expert = 0; expert < parts.size(); ++expert) {
    repack(pool_, parts[expert], panels, data + expert * panels.bytes());
  }
  return std::make_shared<CpuExpertWeights>(static_cast<std::int64_t>(parts.size()), panels, data, slab_);
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
