#include "cpu/linear/expand_functions.h"

namespace sluice {

const TileKernels avx512_bf16 = float32_kernels<Bf16Panels, 8, 3>;
const TileKernels avx512_f16 = float32_kernels<F16Panels, 8, 3>;
const TileKernels avx512_f32 = float32_kernels<F32Panels, 8, 3>;

const ExpandCoded avx512_expand = expand<Float32Out>;

}  // namespace sluice
