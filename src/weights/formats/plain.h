#pragma once
#include "weights/format.h"

namespace sluice {

/// Numbers as they are: bf16, f16, f32 or f64 under NAME.weight.
extern const Format plain_format;

}  // namespace sluice
