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
  }
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
      unpack_row(weight.panels(), weight.data(), rows[i], result.row<float>(i));
    }
  });
  return result;
}

}  // namespace sluice
