#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "weights/format.h"

namespace sluice {

/// One tensor of an encoded matrix.
struct EncodedPart {
  StoredTensor tensor;    // its name is what follows the matrix's: "weight", "weight_scale"
  std::int64_t rows = 1;  // of the matrix that a row of the part covers; 0: the part is of the whole matrix
};

/// Rows of a matrix [out, in] that are encoded together.
struct RowTile {
  const float* values = nullptr;  // [rows, in], finite
  std::int64_t rows = 0, out = 0, in = 0;
  float extreme = 0.0f;  // largest magnitude in the matrix and those stacked with it, for encoders that need it
};

/// A form in which matrices can be written. One row of the table of encoders.
struct Encoder {
  std::string_view name;
  /// What reads the result.
  const Format* format;
  /// Rows of a tile; the last tile of a matrix may have fewer.
  std::int64_t tile_rows;
  bool needs_extreme;
  /// Columns must be a multiple of this.
  std::int64_t column_multiple;
  /// The tensors, the values first; block types and shapes set.
  std::vector<EncodedPart> (*parts)(std::int64_t out, std::int64_t in);
  /// Writes the tile's rows of each part. Throws Error for a number that the form cannot hold.
  void (*encode)(const RowTile& tile, std::span<std::byte* const> parts);

  bool fits(std::int64_t in) const { return in % column_multiple == 0; }
};

/// All encoders.
std::span<const Encoder* const> encoders();
/// By name. Null when there is none.
const Encoder* find_encoder(std::string_view name);
/// The encoder of plain numbers of this type; bf16 for types without one.
const Encoder& plain_encoder(DType dtype);

/// Bytes of a part that belong to this many rows, a whole number of tiles but for the last one.
std::size_t part_bytes(const EncodedPart& part, std::int64_t rows);
/// What was encoded of a tile, as a matrix of its own that can be read back. `tensors` receives the descriptions and
/// must outlive the matrix.
SourceMatrix encoded_tile(const Encoder& encoder, std::span<const EncodedPart> parts, const RowTile& tile,
                          std::span<std::byte* const> bytes, std::vector<StoredTensor>& tensors);

}  // namespace sluice
