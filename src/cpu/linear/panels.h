#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cpu/linear/tile.h"
#include "tensor/buffer.h"
#include "weights/ggml_blocks.h"
#include "weights/weight.h"

namespace sluice {

/// How the CPU keeps a matrix [out, in]: panels of 16 rows.
///   f32_panels, f16_panels: [out / 16][in][16] numbers.
///   bf16_panels: pairs of columns together, [out / 16][in / 2][16][2], as the instructions want them that multiply
///   pairs. coded_panels: [out / 16] times codes and factors of 16 rows side by side (CodedParts), for any Coding.
///   block_rows: [out / 16][16] rows of ggml's blocks as they are stored.
/// Rows beyond out and columns beyond in (it is rounded up to even) are zero.
enum class Layout : std::uint8_t { bf16_panels, f16_panels, f32_panels, coded_panels, block_rows };

std::string_view name_of(Layout layout);

/// Shape and place of panels.
struct Panels {
  Layout layout = Layout::f32_panels;
  std::int64_t out = 0, in = 0;
  Coding coding;                          // of coded panels
  const BlockType* block_type = nullptr;  // of block rows

  std::int64_t count() const { return ceil_divide(out, panel_rows); }
  std::int64_t columns() const { return (in + 1) / 2 * 2; }
  std::size_t panel_bytes() const;
  std::size_t bytes() const { return static_cast<std::size_t>(count()) * panel_bytes(); }
  /// Whether columns must be expanded before they can be multiplied, and in runs of how many.
  bool expands() const { return layout == Layout::coded_panels || layout == Layout::block_rows; }
  std::int64_t column_step() const { return layout == Layout::block_rows ? block_type->values : 4; }
  /// Whether the same rows with other values could take the same place.
  bool same_form(const Panels& other) const {
    return layout == other.layout && in == other.in && coding == other.coding && block_type == other.block_type;
  }
};

/// Offsets of the parts of a coded panel. Codes of less than 8 bits: [columns / 2][16] bytes, the even column in the
/// low nibble; then, for six bits, [columns / 4][16] bytes of two high bits each, the first column lowest. Others:
/// [columns][16]. Factors: [groups][16].
struct CodedParts {
  std::size_t high_codes, scales, supers, offsets, super_offsets, end;
};
CodedParts coded_parts(const Coding& coding, std::int64_t in);

/// Neighbouring rows of a matrix in one layout. The bytes belong to the weight.
struct Segment {
  Panels panels;
  const std::byte* data = nullptr;
  std::int64_t first_row = 0;           // of the matrix
  const std::int32_t* order = nullptr;  // [in]: column c of the panels is column order[c] of the matrix; null: c is
};

/// One matrix in panels: a segment for each run of parts that are stored alike. Keeps the slabs alive.
class CpuWeight final : public Weight {
 public:
  using Slabs = std::vector<std::shared_ptr<const Buffer>>;
  CpuWeight(std::int64_t out, std::int64_t in, std::vector<Segment> segments, Slabs slabs)
      : Weight(out, in), segments_(std::move(segments)), slabs_(std::move(slabs)) {}
  std::size_t bytes() const override;
  std::string layout() const override;
  const std::vector<Segment>& segments() const { return segments_; }

 private:
  std::vector<Segment> segments_;
  Slabs slabs_;
};

/// The panels of all experts: segments as of one, each with one expert after another, and so their orders.
class CpuExpertWeights final : public ExpertWeights {
 public:
  CpuExpertWeights(std::int64_t expert_count, std::int64_t out, std::int64_t in, std::vector<Segment> segments,
                   CpuWeight::Slabs slabs)
      : ExpertWeights(expert_count, out, in), segments_(std::move(segments)), slabs_(std::move(slabs)) {}
  std::size_t bytes() const override;
  std::string layout() const override;
  const std::vector<Segment>& segments() const { return segments_; }
  const std::byte* data(const Segment& segment, std::int64_t expert) const {
    return segment.data + static_cast<std::size_t>(expert) * segment.panels.bytes();
  }
  const std::int32_t* order(const Segment& segment, std::int64_t expert) const {
    return segment.order == nullptr ? nullptr : segment.order + expert * in();
  }

 private:
  std::vector<Segment> segments_;
  CpuWeight::Slabs slabs_;
};

/// The weights of this backend's own placer.
const CpuWeight& cpu_weight(const Weight& weight);
const CpuExpertWeights& cpu_weights(const ExpertWeights& weights);

}  // namespace sluice
