#pragma once
#include "weights/format.h"

namespace sluice {

/// `weight` in one of ggml's block types.
extern const Format ggml_format;

}  // namespace sluice
