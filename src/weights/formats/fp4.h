#pragma once
#include "weights/format.h"

namespace sluice {

/// e2m1 numbers in pairs, the even column in the low nibble. NVFP4: groups of 16 with an e4m3 factor each, and one
/// float32 for the matrix: ModelOpt's `weight_scale_2` multiplies, compressed-tensors' `weight_global_scale` divides.
extern const Format modelopt_nvfp4_format, packed_nvfp4_format;
/// Groups of 32 with a power of two each, as Quark and as compressed-tensors name them.
extern const Format mxfp4_format, packed_mxfp4_format;

}  // namespace sluice
