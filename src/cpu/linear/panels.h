#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "cpu/linear/tile.h"
#include "tensor/buffer.h"
#include "weights/weight.h"

namespace sluice {

/// How the CPU keeps a matrix [out, in]: panels of 16 rows, [out / 16][in][16], of one element type. bf16 keeps pairs
/// of columns together, [out / 16][in / 2][16][2], as the instructions want them that multiply pairs. Rows beyond out
/// and columns beyond in (it is rounded up to even) are zero.
enum class Layout : std::uint8_t { bf16_panels, f16_panels, f32_panels };

std::string_view name_of(Layout layout);

/// Shape and place of panels.
struct Panels {
  Layout layout = Layout::f32_panels;
  std::int64_t out = 0, in = 0;

  std::int64_t count() const { return (out + panel_rows - 1) / panel_rows; }
  std::int64_t columns() const { return (in + 1) / 2 * 2; }
  std::size_t panel_bytes() const {
    return static_cast<std::size_t>(columns() * panel_rows) * (layout == Layout::f32_panels ? 4u : 2u);
  }
  std::size_t bytes() const { return static_cast<std::size_t>(count()) * panel_bytes(); }
};

/// One matrix in panels. The bytes belong to the slab that it keeps alive.
class CpuWeight final : public Weight {
 public:
  CpuWeight(const Panels& panels, const std::byte* data, std::shared_ptr<const Buffer> slab)
      : Weight(panels.out, panels.in), panels_(panels), data_(data), slab_(std::move(slab)) {}
  std::size_t bytes() const override { return panels_.bytes(); }
  std::string layout() const override { return std::string(name_of(panels_.layout)); }
  const Panels& panels() const { return panels_; }
  const std::byte* data() const { return data_; }

 private:
  Panels panels_;
  const std::byte* data_;
  std::shared_ptr<const Buffer> slab_;
};

/// The panels of all experts, one expert after another.
class CpuExpertWeights final : public ExpertWeights {
 public:
  CpuExpertWeights(std::int64_t expert_count, const Panels& panels, const std::byte* data,
                   std::shared_ptr<const Buffer> slab)
      : ExpertWeights(expert_count, panels.out, panels.in), panels_(panels), data_(data), slab_(std::move(slab)) {}
  std::size_t bytes() const override { return static_cast<std::size_t>(experts()) * panels_.bytes(); }
  std::string layout() const override { return std::string(name_of(panels_.layout)); }
  const Panels& panels() const { return panels_; }
  const std::byte* data(std::int64_t expert) const {
    return data_ + static_cast<std::size_t>(expert) * panels_.bytes();
  }

 private:
  Panels panels_;
  const std::byte* data_;
  std::shared_ptr<const Buffer> slab_;
};

/// The weights of this backend's own placer.
const CpuWeight& cpu_weight(const Weight& weight);
const CpuExpertWeights& cpu_weights(const ExpertWeights& weights);

}  // namespace sluice
