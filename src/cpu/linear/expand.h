#pragma once
// Included by translation units that are compiled for one instruction set: no functions here.
#include <cstddef>
#include <cstdint>

#include "weights/coding.h"

namespace sluice {

/// Some columns of one coded panel, to be written out as tiles multiply them.
struct CodedColumns {
  const Coding* coding;
  const std::byte *codes, *high_codes, *scales, *supers, *offsets, *super_offsets;  // of the whole panel
  std::int64_t first, count;  // columns; first a multiple of 4, count even
  std::byte* out;             // [count][16] float32, or [count / 2][16][2] bf16
};
using ExpandCoded = void (*)(const CodedColumns& columns);

// One name an instruction set; the first writes bf16, the others float32.
extern const ExpandCoded avx512_bf16_expand, avx512_expand, avx2_expand, plain_expand;

}  // namespace sluice
