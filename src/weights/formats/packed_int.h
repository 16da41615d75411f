#pragma once
#include "weights/format.h"

namespace sluice {

/// compressed-tensors' pack-quantized: 4- or 8-bit codes in the columns of 32-bit words, lowest first, 2^(bits - 1)
/// more than the number; scales [out, groups]; zero points packed along the rows; the group of each
/// column may be named (`weight_g_idx`).
extern const Format packed_int_format;

}  // namespace sluice
