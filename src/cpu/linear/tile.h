#pragma once
// Included by translation units that are compiled for one instruction set: no functions here.
#include <cstddef>
#include <cstdint>

namespace sluice {

/// Rows of a weight that lie beside each other in memory.
inline constexpr std::int64_t panel_rows = 16;

/// A few rows times a few panels, over some pairs of columns. Each element of out is one running sum over the columns
/// in their order, whatever the size of the tile: so a row's result does not depend on the rows beside it.
struct Tile {
  const void* x;             // packed rows, from the first pair on
  const std::byte* weights;  // first panel, from the first pair on
  std::size_t panel_bytes;   // from one panel to the next
  std::int64_t pairs;
  float* out;  // [rows, out_stride]
  std::int64_t out_stride;
  std::int64_t columns;  // of out, from the first panel's on; less than the panels have at the right edge
  bool go_on;            // from the sums in out; else from zero
};

/// The tiles of one way to multiply, for one instruction set.
struct TileKernels {
  int rows, panels;         // of the largest tile
  std::size_t input_bytes;  // of an element of packed rows
  /// Packs 1 .. rows rows of `in` float32 as tiles want them, [pair][row][2] or [column][row]; in is rounded up to
  /// even by zeros.
  void (*pack)(const float* const* x, int row_count, std::int64_t in, void* packed);
  void (*const* tiles)(const Tile& tile);  // [rows][panels], from 1 x 1 on
};

// One name a kernel: instruction set, then the panels' type. Float32 inputs, except the first: bf16 inputs.
extern const TileKernels avx512_bf16_pairs;
extern const TileKernels avx512_bf16, avx512_f16, avx512_f32;
extern const TileKernels avx2_bf16, avx2_f16, avx2_f32;
extern const TileKernels plain_bf16, plain_f16, plain_f32;

}  // namespace sluice
