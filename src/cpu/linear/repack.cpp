#include "cpu/linear/repack.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "weights/formats/ggml.h"
#include "weights/formats/plain.h"

namespace sluice {

namespace {

using PanelRows = std::array<const std::byte*, panel_rows>;  // null: a row of zeros

/// Columns are computed in pairs, which must not have two factors.
bool in_pairs(const Coding& coding, std::int64_t in) { return coding.group % 2 == 0 || coding.group >= in; }

Panels own_panels(const SourceMatrix& matrix) {
  Panels panels;
  panels.out = matrix.out;
  panels.in = matrix.in;
  if (const auto coding = matrix.coding()) {
    if (!in_pairs(*coding, matrix.in)) return panels;
    panels.layout = Layout::coded_panels;
    panels.coding = *coding;
  } else if (matrix.format == &ggml_format) {
    panels.layout = Layout::block_rows;
    panels.block_type = matrix.values().block_type;
  } else if (matrix.format == &plain_format) {
    const DType dtype = matrix.values().dtype;
    if (dtype == DType::bf16) panels.layout = Layout::bf16_panels;
    if (dtype == DType::f16) panels.layout = Layout::f16_panels;
  }
  return panels;
}

/// Columns a time whose target lines stay in the first-level cache.
constexpr std::int64_t column_block = 32;

/// [16 rows][units] to [units][16] for units of `Unit`, from rows at any address.
template <class Unit>
void transpose(const PanelRows& rows, std::int64_t units, std::byte* out) {
  for (std::int64_t begin = 0; begin < units; begin += column_block) {
    const std::int64_t count = std::min(column_block, units - begin);
    std::byte* block = out + static_cast<std::size_t>(begin * panel_rows) * sizeof(Unit);
    for (std::int64_t row = 0; row < panel_rows; ++row) {
      if (rows[static_cast<std::size_t>(row)] == nullptr) continue;
      const std::byte* from = rows[static_cast<std::size_t>(row)] + static_cast<std::size_t>(begin) * sizeof(Unit);
      std::byte* to = block + static_cast<std::size_t>(row) * sizeof(Unit);
      for (std::int64_t i = 0; i < count; ++i) {
        std::memcpy(to + static_cast<std::size_t>(i * panel_rows) * sizeof(Unit),
                    from + static_cast<std::size_t>(i) * sizeof(Unit), sizeof(Unit));
      }
    }
  }
}

/// Rows of `in` elements of this layout's type to one panel, which is zero before.
void fill_panel(const Panels& panels, const PanelRows& rows, std::byte* out) {
  switch (panels.layout) {
    case Layout::f32_panels: return transpose<std::uint32_t>(rows, panels.in, out);
    case Layout::f16_panels: return transpose<std::uint16_t>(rows, panels.in, out);
    default: break;
  }
  const std::int64_t pairs = panels.in / 2;
  transpose<std::uint32_t>(rows, pairs, out);
  if (panels.in % 2 == 0) return;
  std::byte* last = out + static_cast<std::size_t>(pairs * panel_rows) * sizeof(std::uint32_t);
  for (std::size_t row = 0; row < panel_rows; ++row) {
    if (rows[row] != nullptr) std::memcpy(last + 4 * row, rows[row] + 4 * pairs, 2);
  }
}

/// A row of a stack: its part and the row within it.
struct StackedRow {
  const SourceMatrix* part;
  std::int64_t row;
};

std::vector<StackedRow> stacked_rows(std::span<const SourceMatrix> parts) {
  std::vector<StackedRow> rows;
  for (const SourceMatrix& part : parts) {
    for (std::int64_t row = 0; row < part.out; ++row) rows.push_back({&part, row});
  }
  return rows;
}

/// Up to 16 rows to one panel, which is zero before. Only codes have an order.
using FillPanel = void (*)(const Panels& panels, std::span<const StackedRow> rows, std::span<const std::int32_t> order,
                           std::byte* out);

void fill_with_numbers(const Panels& panels, std::span<const StackedRow> rows, std::span<const std::int32_t>,
                       std::byte* out) {
  PanelRows addresses{};
  std::vector<float> values(panels.layout == Layout::f32_panels ? static_cast<std::size_t>(panel_rows * panels.in)
                                                                : 0u);
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const SourceMatrix& part = *rows[row].part;
    if (panels.layout == Layout::f32_panels) {
      float* own = values.data() + row * static_cast<std::size_t>(panels.in);
      part.dequantize(rows[row].row, 1, own);
      addresses[row] = reinterpret_cast<const std::byte*>(own);
    } else {
      const std::size_t row_bytes = 2 * static_cast<std::size_t>(part.in);
      addresses[row] = part.plain_rows().data() + static_cast<std::size_t>(rows[row].row) * row_bytes;
    }
  }
  fill_panel(panels, addresses, out);
}

void fill_with_blocks(const Panels& panels, std::span<const StackedRow> rows, std::span<const std::int32_t>,
                      std::byte* out) {
  const auto row_bytes = static_cast<std::size_t>(panels.in / panels.block_type->values * panels.block_type->bytes);
  for (const auto& [part, row] : rows) {
    std::memcpy(out, checked_blocks(*part, row), row_bytes);
    out += row_bytes;
  }
}

/// Factors of one row to every 16th place.
void spread(const std::vector<std::byte>& factors, FactorType type, std::byte* out) {
  const std::size_t size = size_of(type);
  for (std::size_t at = 0; size > 0 && at < factors.size(); at += size) {
    std::memcpy(out + at * panel_rows, factors.data() + at, size);
  }
}

void spread_codes(const Panels& panels, const std::vector<std::uint8_t>& codes, std::size_t row, std::byte* panel) {
  const CodedParts parts = coded_parts(panels.coding, panels.in);
  for (std::size_t column = 0; column < codes.size(); ++column) {
    const std::uint8_t code = codes[column];
    if (panels.coding.codes == CodeKind::int8 || panels.coding.codes == CodeKind::f8_e4m3) {
      panel[column * panel_rows + row] = std::byte{code};
      continue;
    }
    panel[column / 2 * panel_rows + row] |= static_cast<std::byte>((code & 15) << (4 * (column % 2)));
    if (panels.coding.codes != CodeKind::six_bit) continue;
    panel[parts.high_codes + column / 4 * panel_rows + row] |=
        static_cast<std::byte>((code >> 4) << (2 * (column % 4)));
  }
}

void fill_with_codes(const Panels& panels, std::span<const StackedRow> rows, std::span<const std::int32_t> order,
                     std::byte* out) {
  const Coding& coding = panels.coding;
  const CodedParts parts = coded_parts(coding, panels.in);
  CodedRowBuffer buffer(coding, panels.in);
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const auto& [part, index] = rows[row];
    part->read_row(index, coding, order, buffer);
    spread_codes(panels, buffer.codes, row, out);
    spread(buffer.scales, coding.scales, out + parts.scales + row * size_of(coding.scales));
    spread(buffer.supers, coding.supers, out + parts.supers + row * size_of(coding.supers));
    spread(buffer.offsets, coding.offsets, out + parts.offsets + row * size_of(coding.offsets));
    spread(buffer.super_offsets, coding.super_offsets, out + parts.super_offsets + row * size_of(coding.super_offsets));
  }
}

/// The order of a part, which is to lie in these panels; the experts of a layer are computed together, and so stored
/// alike.
std::vector<std::int32_t> checked_order(const std::vector<SourceMatrix>& stack, std::size_t part,
                                        const Panels& panels) {
  const SourceMatrix& matrix = stack[std::min(part, stack.size() - 1)];
  CHECK(matrix.in > 0 && matrix.out > 0, "[{}, {}]", matrix.out, matrix.in);
  const Panels own = own_panels(matrix);
  if (part >= stack.size() || !own.same_form(panels) || own.out != panels.out) {
    fail<LoadError>(
        "{}: tensor \"{}\" ({} {}) is stored in another form than the same matrix of the layer's first expert",
        matrix.values().source, matrix.values().name, matrix.values().type_name(), matrix.values().shape_text());
  }
  return own.layout == Layout::coded_panels ? matrix.input_order() : std::vector<std::int32_t>();
}

FillPanel fill_of(Layout layout) {
  switch (layout) {
    case Layout::coded_panels: return fill_with_codes;
    case Layout::block_rows: return fill_with_blocks;
    default: return fill_with_numbers;
  }
}

}  // namespace

bool SegmentPlan::has_orders() const {
  return std::ranges::any_of(orders, [](const std::vector<std::int32_t>& order) { return !order.empty(); });
}

std::vector<SegmentPlan> plan_segments(std::span<const std::vector<SourceMatrix>> stacks) {
  CHECK(!stacks.empty() && !stacks.front().empty());
  const std::vector<SourceMatrix>& first = stacks.front();
  std::vector<SegmentPlan> segments;
  for (std::size_t i = 0; i < first.size(); ++i) {
    SegmentPlan plan{own_panels(first[i]), i, 1, {}};
    for (const std::vector<SourceMatrix>& stack : stacks) plan.orders.push_back(checked_order(stack, i, plan.panels));
    if (const auto coding = first[i].coding(); coding && plan.panels.layout != Layout::coded_panels) {
      log_warning("{}: tensor \"{}\" has a factor for every {} columns, an odd number: it is kept as float32",
                  first[i].values().source, first[i].values().name, coding->group);
    }
    CHECK(first[i].in == first.front().in, "{} columns in a stack of {}", first[i].in, first.front().in);
    if (segments.empty() || !segments.back().panels.same_form(plan.panels) || segments.back().orders != plan.orders) {
      segments.push_back(std::move(plan));
    } else {
      segments.back().panels.out += plan.panels.out;
      ++segments.back().parts;
    }
  }
  return segments;
}

void repack(ThreadPool& pool, std::span<const SourceMatrix> parts, const Panels& panels,
            std::span<const std::int32_t> order, std::byte* data) {
  const std::vector<StackedRow> rows = stacked_rows(parts);
  const FillPanel fill = fill_of(panels.layout);
  pool.parallel_for(panels.count(), 1, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t panel = begin; panel < end; ++panel) {
      const std::int64_t first = panel * panel_rows, count = std::min(panel_rows, panels.out - first);
      fill(panels, std::span(rows).subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count)), order,
           data + static_cast<std::size_t>(panel) * panels.panel_bytes());
    }
  });
}

}  // namespace sluice
