#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>

#include "weights/coding.h"
#include "weights/ggml_blocks.h"

namespace sluice::ggml {

/// The codes and factors of rows of `in` values; null for types that are only read block by block.
std::optional<Coding> coding_of(const BlockType& type, std::int64_t in);
/// Takes one row of whole blocks apart, for types that have a coding.
void read_row(const BlockType& type, const std::byte* row, std::int64_t in, const CodedRow& out);

}  // namespace sluice::ggml
