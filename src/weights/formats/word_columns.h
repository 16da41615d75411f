#pragma once
#include "weights/format.h"

namespace sluice {

/// Formats that store `qweight` transposed, with `qzeros` and `scales` by group. GPTQ packs 4- or 8-bit codes along the
/// columns, with zero points that are 1 too small unless the hints say otherwise, and may name
/// the group of each column (`g_idx`); AWQ packs 4-bit codes along the rows, in an order of its own.
extern const Format gptq_format, awq_format;

}  // namespace sluice
