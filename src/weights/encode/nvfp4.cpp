#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "weights/encode/forms.h"
#include "weights/formats/fp4.h"

namespace sluice {

namespace {

constexpr std::int64_t group = 16;
constexpr float largest_e2m1 = 6.0f;

using Codes = std::array<std::uint8_t, group>;

std::vector<EncodedPart> parts(std::int64_t out, std::int64_t in) {
  return {{{"weight", DType::u8, {out, in / 2}, ""}, 1},
          {{"weight_scale", DType::f8_e4m3, {out, in / group}, ""}, 1},
          {{"weight_scale_2", DType::f32, {}, ""}, 0}};
}

/// Factors of the groups are then at most the largest e4m3 number.
float matrix_factor(float extreme) {
  const float factor = extreme / (largest_e2m1 * largest_e4m3);
  return factor >= std::numeric_limits<float>::min() ? factor : 1.0f;
}

struct Fit {
  std::uint8_t scale = 0;
  Codes codes{};
  float error = std::numeric_limits<float>::infinity();  // squared
};

/// 16 numbers, already divided by the matrix's factor.
Fit fit_with(const float* values, std::uint8_t scale) {
  Fit fit;
  fit.scale = scale;
  fit.error = 0.0f;
  const float factor = e4m3_to_float(scale), inverse = factor > 0.0f ? 1.0f / factor : 0.0f;
  for (std::size_t i = 0; i < group; ++i) {
    fit.codes[i] = float_to_e2m1(values[i] * inverse);
    const float difference = 0.5f * static_cast<float>(e2m1_halves[fit.codes[i]]) * factor - values[i];
    fit.error += difference * difference;
  }
  return fit;
}

/// Scales around the one that takes the largest number to 6: down to where it is cut, up to where it becomes 4.
Fit best_fit(const float* values) {
  constexpr int below = 4, above = 6, largest = 0x7e;
  float extreme = 0.0f;
  for (std::int64_t i = 0; i < group; ++i) extreme = std::max(extreme, std::fabs(values[i]));
  const int center = float_to_e4m3(extreme / largest_e2m1);
  Fit best;
  for (int scale = std::max(0, center - below); scale <= std::min(largest, center + above); ++scale) {
    const Fit fit = fit_with(values, static_cast<std::uint8_t>(scale));
    if (fit.error < best.error) best = fit;
  }
  return best;
}

void encode(const RowTile& tile, std::span<std::byte* const> parts) {
  const float factor = matrix_factor(tile.extreme), inverse = 1.0f / factor;
  std::memcpy(parts[2], &factor, sizeof factor);
  std::array<float, group> scaled;
  for (std::int64_t at = 0; at < tile.rows * tile.in; at += group) {
    for (std::size_t i = 0; i < group; ++i) scaled[i] = tile.values[at + static_cast<std::int64_t>(i)] * inverse;
    const Fit fit = best_fit(scaled.data());
    parts[1][at / group] = std::byte{fit.scale};
    for (std::size_t i = 0; i < group; i += 2) {
      const int pair = fit.codes[i] | fit.codes[i + 1] << 4;
      parts[0][at / 2 + static_cast<std::int64_t>(i) / 2] = static_cast<std::byte>(pair);
    }
  }
}

}  // namespace

const Encoder nvfp4_encoder{"nvfp4", &modelopt_nvfp4_format, 32, true, group, parts, encode};

}  // namespace sluice
