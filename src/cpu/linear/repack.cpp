#include "cpu/linear/repack.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <vector>

#include "weights/formats/plain.h"

namespace sluice {

namespace {

using PanelRows = std::array<const std::byte*, panel_rows>;  // null: a row of zeros

std::optional<Layout> own_layout(const SourceMatrix& matrix) {
  if (matrix.format != &plain_format) return std::nullopt;
  switch (matrix.tensors.front()->dtype) {
    case DType::bf16: return Layout::bf16_panels;
    case DType::f16: return Layout::f16_panels;
    default: return std::nullopt;
  }
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
    case Layout::bf16_panels: break;
  }
  const std::int64_t pairs = panels.in / 2;
  transpose<std::uint32_t>(rows, pairs, out);
  if (panels.in % 2 == 0) return;
  std::byte* last = out + static_cast<std::size_t>(pairs * panel_rows) * sizeof(std::uint32_t);
  for (std::size_t row = 0; row < panel_rows; ++row) {
    if (rows[row] != nullptr) std::memcpy(last + 4 * row, rows[row] + 4 * pairs, 2);
  }
}

/// Where each row of a stack is stored.
class StackedRows {
 public:
  explicit StackedRows(std::span<const SourceMatrix> parts) : parts_(parts) {}

  /// Rows first .. first + count - 1 as float32, packed.
  void dequantize(std::int64_t first, std::int64_t count, float* out) const {
    for (const SourceMatrix& part : parts_) {
      const std::int64_t here = std::min(count, part.out - first);
      if (here > 0) {
        part.dequantize(first, here, out);
        out += here * part.in;
        count -= here;
        first += here;
      }
      first -= part.out;
      if (count == 0) return;
    }
  }

  /// The address of each row, for plain parts.
  std::vector<const std::byte*> addresses() const {
    std::vector<const std::byte*> rows;
    for (const SourceMatrix& part : parts_) {
      const std::span<const std::byte> bytes = part.plain_rows();
      const std::size_t row_bytes = static_cast<std::size_t>(part.in) * size_of(part.tensors.front()->dtype);
      CHECK(bytes.size() == row_bytes * static_cast<std::size_t>(part.out), "{} bytes for {} rows of {}", bytes.size(),
            part.out, row_bytes);
      for (std::int64_t row = 0; row < part.out; ++row) {
        rows.push_back(bytes.data() + static_cast<std::size_t>(row) * row_bytes);
      }
    }
    return rows;
  }

 private:
  std::span<const SourceMatrix> parts_;
};

}  // namespace

Panels panels_for(std::span<const SourceMatrix> parts) {
  CHECK(!parts.empty());
  Panels panels{own_layout(parts.front()).value_or(Layout::f32_panels), 0, parts.front().in};
  for (const SourceMatrix& part : parts) {
    CHECK(part.in == panels.in && part.in > 0 && part.out > 0, "[{}, {}] in a stack of {} columns", part.out, part.in,
          panels.in);
    if (own_layout(part) != panels.layout) panels.layout = Layout::f32_panels;
    panels.out += part.out;
  }
  return panels;
}

void repack(ThreadPool& pool, std::span<const SourceMatrix> parts, const Panels& panels, std::byte* data) {
  const StackedRows stack(parts);
  const bool as_stored =
      panels.layout != Layout::f32_panels || std::all_of(parts.begin(), parts.end(), [](const SourceMatrix& part) {
        return part.format == &plain_format && part.tensors.front()->dtype == DType::f32;
      });
  const std::vector<const std::byte*> addresses = as_stored ? stack.addresses() : std::vector<const std::byte*>{};
  pool.parallel_for(panels.count(), 1, [&](std::int64_t begin, std::int64_t end) {
    std::vector<float> values(as_stored ? 0u : static_cast<std::size_t>(panel_rows * panels.in));
    for (std::int64_t panel = begin; panel < end; ++panel) {
      const std::int64_t first = panel * panel_rows;
      const std::int64_t count = std::min(panel_rows, panels.out - first);
      if (!as_stored) stack.dequantize(first, count, values.data());
      PanelRows rows{};
      for (std::int64_t row = 0; row < count; ++row) {
        rows[static_cast<std::size_t>(row)] = as_stored
                                                  ? addresses[static_cast<std::size_t>(first + row)]
                                                  : reinterpret_cast<const std::byte*>(values.data() + row * panels.in);
      }
      fill_panel(panels, rows, data + static_cast<std::size_t>(panel) * panels.panel_bytes());
    }
  });
}

}  // namespace sluice
