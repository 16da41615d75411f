#pragma once
#include "weights/format.h"

namespace sluice {

/// `weight` in one of ggml's block types.
extern const Format ggml_format;

/// The blocks of a row of such a matrix, as they are stored. Throws LoadError for a scale that is not finite.
const std::byte* checked_blocks(const SourceMatrix& matrix, std::int64_t row);

}  // namespace sluice
