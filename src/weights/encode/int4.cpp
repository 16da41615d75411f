#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "base/integers.h"
#include "weights/encode/forms.h"
#include "weights/formats/packed_int.h"
#include "weights/ggml/rounding.h"

namespace sluice {

namespace {

constexpr std::int64_t largest_group = 128, smallest_group = 32;

std::int64_t group_of(std::int64_t in) {
  std::int64_t group = largest_group;
  while (in % group != 0) group /= 2;
  return group;
}

std::vector<EncodedPart> parts(std::int64_t out, std::int64_t in) {
  return {{{"weight_packed", DType::i32, {out, in / 8}, ""}, 1},
          {{"weight_scale", DType::bf16, {out, in / group_of(in)}, ""}, 1},
          {{"weight_shape", DType::i64, {2}, ""}, 0}};
}

int code_of(float value, float inverse) { return ggml::to_code(value * inverse, -8, 7); }

/// The factor with the least squared error for the codes that this one gives.
float refined(std::span<const float> values, float factor) {
  const float inverse = 1.0f / factor;
  float products = 0.0f, squares = 0.0f;
  for (const float value : values) {
    const auto code = static_cast<float>(code_of(value, inverse));
    products += value * code;
    squares += code * code;
  }
  return squares > 0.0f ? products / squares : factor;
}

float squared_error(std::span<const float> values, float factor) {
  const float inverse = 1.0f / factor;
  float error = 0.0f;
  for (const float value : values) {
    const float difference = static_cast<float>(code_of(value, inverse)) * factor - value;
    error += difference * difference;
  }
  return error;
}

/// A factor in bf16. Those that take the largest magnitude to 4.5 up to 8.5 are tried, and the best for their codes.
std::uint16_t fit_factor(std::span<const float> values) {
  float extreme = 0.0f;
  for (const float value : values) extreme = std::max(extreme, std::fabs(value));
  std::uint16_t best = float_to_bf16(1.0f);
  float best_error = std::numeric_limits<float>::infinity();
  const auto attempt = [&](float factor) {
    const std::uint16_t rounded = float_to_bf16(factor);
    factor = bf16_to_float(rounded);
    if (!(factor > 0.0f) || !std::isfinite(1.0f / factor)) return;
    const float error = squared_error(values, factor);
    if (error >= best_error) return;
    best = rounded;
    best_error = error;
  };
  for (int step = 0; step <= 20; ++step) {
    const float factor = extreme / (4.5f + 0.2f * static_cast<float>(step));
    if (!(factor > 0.0f) || !std::isfinite(1.0f / factor)) continue;
    attempt(factor);
    attempt(refined(values, factor));
  }
  return best;
}

void encode(const RowTile& tile, std::span<std::byte* const> parts) {
  const auto group = static_cast<std::size_t>(group_of(tile.in));
  const std::span<const float> all(tile.values, static_cast<std::size_t>(tile.rows * tile.in));
  for (std::size_t at = 0; at < all.size(); at += group) {
    const std::span<const float> values = all.subspan(at, group);
    const std::uint16_t factor = fit_factor(values);
    std::memcpy(parts[1] + at / group * sizeof factor, &factor, sizeof factor);
    const float inverse = 1.0f / bf16_to_float(factor);
    for (std::size_t i = 0; i < group; i += 2) {
      const int low = code_of(values[i], inverse) + 8, high = code_of(values[i + 1], inverse) + 8;
      parts[0][(at + i) / 2] = static_cast<std::byte>(low | high << 4);
    }
  }
  const std::int64_t shape[] = {tile.out, tile.in};
  std::memcpy(parts[2], shape, sizeof shape);
}

}  // namespace

const Encoder int4_encoder{"int4", &packed_int_format, 32, false, smallest_group, parts, encode};

}  // namespace sluice
