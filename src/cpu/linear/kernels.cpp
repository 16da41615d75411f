#include <vector>

#include "cpu/linear/kernel.h"

namespace sluice {

namespace {

template <Layout wanted>
bool avx512(Layout layout, const InstructionSet& machine, Compute) {
  return layout == wanted && machine.avx512;
}

template <Layout wanted>
bool avx2(Layout layout, const InstructionSet& machine, Compute) {
  return layout == wanted && machine.avx2;
}

template <Layout wanted>
bool any(Layout layout, const InstructionSet&, Compute) {
  return layout == wanted;
}

template <Layout wanted>
bool bf16_pairs(Layout layout, const InstructionSet& machine, Compute compute) {
  return layout == wanted && machine.avx512_bf16 && compute == Compute::bf16;
}

/// Rows of blocks, through float32.
void expand_blocks(const Panels& panels, const std::byte* panel, std::int64_t first, std::int64_t count, float* out) {
  const BlockType& type = *panels.block_type;
  const std::int64_t row_bytes = panels.in / type.values * type.bytes;
  std::vector<float> row(static_cast<std::size_t>(count));
  for (std::int64_t r = 0; r < panel_rows; ++r) {
    type.dequantize(panel + r * row_bytes + first / type.values * type.bytes, count / type.values, row.data());
    for (std::int64_t i = 0; i < count; ++i) out[i * panel_rows + r] = row[static_cast<std::size_t>(i)];
  }
}

}  // namespace

std::span<const LinearKernel> linear_kernels() {
  static constexpr LinearKernel table[] = {
      {"AVX512-BF16 dot products", bf16_pairs<Layout::bf16_panels>, &avx512_bf16_pairs},
      {"AVX-512 float32 from bf16", avx512<Layout::bf16_panels>, &avx512_bf16},
      {"AVX-512 float32 from f16", avx512<Layout::f16_panels>, &avx512_f16},
      {"AVX-512 float32", avx512<Layout::f32_panels>, &avx512_f32},
      {"AVX2 float32 from bf16", avx2<Layout::bf16_panels>, &avx2_bf16},
      {"AVX2 float32 from f16", avx2<Layout::f16_panels>, &avx2_f16},
      {"AVX2 float32", avx2<Layout::f32_panels>, &avx2_f32},
      {"plain float32 from bf16", any<Layout::bf16_panels>, &plain_bf16},
      {"plain float32 from f16", any<Layout::f16_panels>, &plain_f16},
      {"plain float32", any<Layout::f32_panels>, &plain_f32},
      {"AVX512-BF16 dot products from codes", bf16_pairs<Layout::coded_panels>, &avx512_bf16_pairs, &avx512_bf16_expand,
       2},
      {"AVX-512 float32 from codes", avx512<Layout::coded_panels>, &avx512_f32, &avx512_expand, 4},
      {"AVX2 float32 from codes", avx2<Layout::coded_panels>, &avx2_f32, &avx2_expand, 4},
      {"plain float32 from codes", any<Layout::coded_panels>, &plain_f32, &plain_expand, 4},
      {"AVX-512 float32 from blocks read one by one", avx512<Layout::block_rows>, &avx512_f32, nullptr, 4},
      {"AVX2 float32 from blocks read one by one", avx2<Layout::block_rows>, &avx2_f32, nullptr, 4},
      {"plain float32 from blocks read one by one", any<Layout::block_rows>, &plain_f32, nullptr, 4},
  };
  return table;
}

const LinearKernel& choose_linear_kernel(Layout layout, const InstructionSet& machine, Compute compute) {
  for (const LinearKernel& kernel : linear_kernels()) {
    if (kernel.accepts(layout, machine, compute)) return kernel;
  }
  check_failed(__FILE__, __LINE__, "a kernel for every layout", std::string(name_of(layout)));
}

void expand_panel(const LinearKernel& kernel, const Panels& panels, const std::byte* panel, std::int64_t first,
                  std::int64_t count, std::byte* out) {
  if (panels.layout == Layout::block_rows) {
    return expand_blocks(panels, panel, first, count, reinterpret_cast<float*>(out));
  }
  const CodedParts parts = coded_parts(panels.coding, panels.in);
  (*kernel.expand)({&panels.coding, panel, panel + parts.high_codes, panel + parts.scales, panel + parts.supers,
                    panel + parts.offsets, panel + parts.super_offsets, first, count, out});
}

}  // namespace sluice
