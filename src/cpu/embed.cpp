#include <cstring>
#include <vector>

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

/// Factors of one row, which lie 16 apart.
void gather(FactorType type, const std::byte* panel, std::int64_t lane, std::vector<std::byte>& factors) {
  const std::size_t size = size_of(type);
  for (std::size_t at = 0; size > 0 && at < factors.size(); at += size) {
    std::memcpy(factors.data() + at, panel + at * panel_rows + static_cast<std::size_t>(lane) * size, size);
  }
}

void unpack_codes(const Panels& panels, const std::byte* panel, std::int64_t lane, float* out) {
  const Coding& coding = panels.coding;
  const CodedParts parts = coded_parts(coding, panels.in);
  CodedRowBuffer row(coding, panels.in);
  for (std::int64_t column = 0; column < panels.in; ++column) {
    row.codes[static_cast<std::size_t>(column)] = code_at(panels, panel, column, lane);
  }
  gather(coding.scales, panel + parts.scales, lane, row.scales);
  gather(coding.supers, panel + parts.supers, lane, row.supers);
  gather(coding.offsets, panel + parts.offsets, lane, row.offsets);
  gather(coding.super_offsets, panel + parts.super_offsets, lane, row.super_offsets);
  decode_row(coding, row.row(), panels.in, out);
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
      if (segment.order == nullptr) continue;
      restore_order({segment.order, static_cast<std::size_t>(weight.in())}, result.row<float>(i));
    }
  });
  return result;
}

}  // namespace sluice
