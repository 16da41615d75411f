#pragma once
#include "weights/format.h"

namespace sluice {

/// `weight` of e4m3 with `weight_scale_inv` or `weight_scale` beside it, both factors: one for all, one a row, one a
/// group of columns, or one a block of 128 x 128.
extern const Format fp8_format;
/// The same with int8.
extern const Format int8_format;

}  // namespace sluice
