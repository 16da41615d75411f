#include "cpu/linear/expand_functions.h"

namespace sluice {

const TileKernels plain_bf16 = float32_kernels<Bf16Panels, 2, 1>;
const TileKernels plain_f16 = float32_kernels<F16Panels, 2, 1>;
const TileKernels plain_f32 = float32_kernels<F32Panels, 2, 1>;

const ExpandCoded plain_expand = expand<Float32Out>;

}  // namespace sluice
