#include <algorithm>
#include <cstring>

#include "cpu/cpu_ops.h"
#include "cpu/linear/panels.h"
#include "cpu/rows.h"

namespace sluice {

namespace {

std::uint16_t read_half(const std::byte* p) {
  std::uint16_t bits;
  std::memcpy(&bits, p, sizeof bits);
  return bits;
}

/// The code of a column, taken out of its panel.
std::uint8_t code_at(const Panels& panels, const std::byte* panel, std::int64_t column, std::int64_t lane) {
  const auto at = [&](std::int64_t index) { return std::to_integer<std::uint8_t>(panel[index * panel_rows + lane]); };
  const CodeKind kind = panels.coding.codes;
  if (kind == CodeKind::int8 || kind == CodeKind::f8_e4m3) return at(column);
  const auto low = static_cast<std::uint8_t>(at(column / 2) >> (4 * (column % 2)) & 15);
  if (kind == CodeKind::table) return low;
  panel += coded_parts(panels.coding, panels.in).high_codes;
  return static_cast<std::uint8_t>(low | (at(column / 4) >> (2 * (column % 4)) & 3) << 4);
}

/// The definition of a coding, one row at a time.
void unpack_codes(const Panels& panels, const std::byte* panel, std::int64_t lane, float* out) {
  const Coding& coding = panels.coding;
  const CodedParts parts = coded_parts(coding, panels.in);
  const auto factor = [&](FactorType type, std::size_t start, std::int64_t index) {
    return load_factor(type, panel + start, index * panel_rows + lane);
  };
  for (std::int64_t group = 0; group < coding.groups(panels.in); ++group) {
    const std::int64_t first = group * coding.group, end = std::min(panels.in, first + coding.group);
    const std::int64_t super = coding.super_group > 0 ? first / coding.super_group : 0;
    const float scale = factor(coding.scales, parts.scales, group) * factor(coding.supers, parts.supers, super);
    float offset = 0.0f;
    if (coding.offsets != FactorType::none) {
      offset = factor(coding.offsets, parts.offsets, group) *
               (coding.zero_points ? scale : factor(coding.super_offsets, parts.super_offsets, super));
    }
    for (std::int64_t column = first; column < end; ++column) {
      out[column] = number_of(coding, code_at(panels, panel, column, lane)) * scale - offset;
    }
  }
}

/// One row of the matrix, taken out of its panel.
void unpack_row(const Panels& panels, const std::byte* data, std::int64_t row, float* out) {
  const std::byte* panel = data + static_cast<std::size_t>(row / panel_rows) * panels.panel_bytes();
  const std::int64_t lane = row % panel_rows;
  switch (panels.layout) {
    case Layout::bf16_panels:
      for (std::int64_t i = 0; i < panels.in; ++i) {
        out[i] = bf16_to_float(read_half(panel + (i / 2 * panel_rows + lane) * 4 + i % 2 * 2));
      }
      return;
    case Layout::f16_panels:
      for (std::int64_t i = 0; i < panels.in; ++i)
        out[i] = f16_to_float(read_half(panel + (i * panel_rows + lane) * 2));
      return;
    case Layout::f32_panels:
      for (std::int64_t i = 0; i < panels.in; ++i) std::memcpy(out + i, panel + (i * panel_rows + lane) * 4, 4);
      return;
    case Layout::coded_panels: return unpack_codes(panels, panel, lane, out);
    case Layout::block_rows: {
      const std::int64_t blocks = panels.in / panels.block_type->values;
      return panels.block_type->dequantize(panel + lane * blocks * panels.block_type->bytes, blocks, out);
    }
  }
}

const Segment& segment_of(const CpuWeight& weight, std::int64_t row) {
  for (const Segment& segment : weight.segments()) {
    if (row < segment.first_row + segment.panels.out) return segment;
  }
  check_failed(__FILE__, __LINE__, "a row of the matrix", fmt::format("{} of {}", row, weight.out()));
}

}  // namespace

Tensor CpuOps::embed(const Weight& table, const Tensor& ids) {
  const CpuWeight& weight = cpu_weight(table);
  CHECK(ids.rank() == 1 && ids.dtype() == DType::i32 && ids.is_contiguous(), "ids {} {}", name_of(ids.dtype()),
        ids.shape().to_string());
  const auto* rows = ids.as<std::int32_t>();
  for (std::int64_t i = 0; i < ids.size(0); ++i) CHECK(rows[i] >= 0 && rows[i] < weight.out(), "id {}", rows[i]);
  const Tensor result = allocate(DType::f32, {ids.size(0), weight.in()});
  // A row touches a line of memory for each pair of columns.
  pool_.parallel_for(ids.size(0), grain_of_rows(4 * weight.in()), [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const Segment& segment = segment_of(weight, rows[i]);
      unpack_row(segment.panels, segment.data, rows[i] - segment.first_row, result.row<float>(i));
    }
  });
  return result;
}

}  // namespace sluice
