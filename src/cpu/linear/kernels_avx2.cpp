#include "cpu/linear/expand_functions.h"

namespace sluice {

const TileKernels avx2_bf16 = float32_kernels<Bf16Panels, 6, 1>;
const TileKernels avx2_f16 = float32_kernels<F16Panels, 6, 1>;
const TileKernels avx2_f32 = float32_kernels<F32Panels, 6, 1>;

const ExpandCoded avx2_expand = expand<Float32Out>;

}  // namespace sluice
