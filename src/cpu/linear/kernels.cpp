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

bool bf16_pairs(Layout layout, const InstructionSet& machine, Compute compute) {
  return layout == Layout::bf16_panels && machine.avx512_bf16 && compute == Compute::bf16;
}

}  // namespace

std::span<const LinearKernel> linear_kernels() {
  static constexpr LinearKernel table[] = {
      {"AVX512-BF16 dot products", bf16_pairs, &avx512_bf16_pairs},
      {"AVX-512 float32 from bf16", avx512<Layout::bf16_panels>, &avx512_bf16},
      {"AVX-512 float32 from f16", avx512<Layout::f16_panels>, &avx512_f16},
      {"AVX-512 float32", avx512<Layout::f32_panels>, &avx512_f32},
      {"AVX2 float32 from bf16", avx2<Layout::bf16_panels>, &avx2_bf16},
      {"AVX2 float32 from f16", avx2<Layout::f16_panels>, &avx2_f16},
      {"AVX2 float32", avx2<Layout::f32_panels>, &avx2_f32},
      {"plain float32 from bf16", any<Layout::bf16_panels>, &plain_bf16},
      {"plain float32 from f16", any<Layout::f16_panels>, &plain_f16},
      {"plain float32", any<Layout::f32_panels>, &plain_f32},
  };
  return table;
}

const LinearKernel& choose_linear_kernel(Layout layout, const InstructionSet& machine, Compute compute) {
  for (const LinearKernel& kernel : linear_kernels()) {
    if (kernel.accepts(layout, machine, compute)) return kernel;
  }
  check_failed(__FILE__, __LINE__, "a kernel for every layout", std::string(name_of(layout)));
}

}  // namespace sluice
