#include "cpu/simd/probe_functions.h"

namespace sluice {

const ProbeKernels probe_kernels_avx2 = {read_floats, multiply_floats, multiply_floats};

}  // namespace sluice
