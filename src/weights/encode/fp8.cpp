#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/integers.h"
#include "weights/encode/forms.h"
#include "weights/formats/byte_codes.h"

namespace sluice {

namespace {

constexpr std::int64_t block = 128;

std::vector<EncodedPart> parts(std::int64_t out, std::int64_t in) {
  return {{{"weight", DType::f8_e4m3, {out, in}, ""}, 1},
          {{"weight_scale_inv", DType::f32, {ceil_divide(out, block), ceil_divide(in, block)}, ""}, block}};
}

/// The factor with which the largest of a tile's columns begin .. end - 1 is the largest e4m3 number.
float factor_of(const RowTile& tile, std::int64_t begin, std::int64_t end) {
  float extreme = 0.0f;
  for (std::int64_t row = 0; row < tile.rows; ++row) {
    for (std::int64_t i = begin; i < end; ++i) extreme = std::max(extreme, std::fabs(tile.values[row * tile.in + i]));
  }
  const float factor = extreme / largest_e4m3;
  return factor > 0.0f && std::isfinite(1.0f / factor) ? factor : 1.0f;
}

void encode(const RowTile& tile, std::span<std::byte* const> parts) {
  for (std::int64_t begin = 0; begin < tile.in; begin += block) {
    const std::int64_t end = std::min(tile.in, begin + block);
    const float factor = factor_of(tile, begin, end), inverse = 1.0f / factor;
    std::memcpy(parts[1] + begin / block * static_cast<std::int64_t>(sizeof factor), &factor, sizeof factor);
    for (std::int64_t row = 0; row < tile.rows; ++row) {
      for (std::int64_t i = row * tile.in + begin; i < row * tile.in + end; ++i) {
        parts[0][i] = std::byte{float_to_e4m3(tile.values[i] * inverse)};
      }
    }
  }
}

}  // namespace

const Encoder fp8_encoder{"fp8", &fp8_format, block, false, 1, parts, encode};

}  // namespace sluice
