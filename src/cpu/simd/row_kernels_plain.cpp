// Compiled for one instruction set: nothing here may be shared with other translation units.
#include "cpu/simd/attention_functions.h"
#include "cpu/simd/delta_functions.h"
#include "cpu/simd/row_functions.h"

namespace sluice {

const RowKernels row_kernels_plain = {
    add,      add_scaled, silu_mul, sigmoid_mul, exp_into, rms_norm,    gated_rms_norm,   l2_norm,
    convolve, rotate,     to_bf16,  from_bf16,   attend,   delta_steps, delta_chunk_step,
};

}  // namespace sluice
