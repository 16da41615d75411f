#include <algorithm>
#include <array>
#include <cmath>

#include "weights/ggml/k_scales.h"
#include "weights/ggml/quantize.h"
#include "weights/ggml/rounding.h"

namespace sluice::ggml {
namespace {

// More than any of these blocks can say; squares and cubes of smaller values stay in the range of float.
constexpr float largest = 268435456.0f;  // 2^28

std::array<float, 256> limited(const float* values) {
  std::array<float, 256> result;
  for (std::size_t i = 0; i < 256; ++i) result[i] = std::clamp(values[i], -largest, largest);
  return result;
}

/// scale * code + minimum, codes 0 to 15.
struct Line {
  float scale, minimum;
};

/// The line for 32 values that makes the sum of squared errors small, each weighted by its magnitude plus the root mean
/// square of all. Steps of 1/10 code around the plain scale are tried, each with the best line for its codes.
Line fit_line(const float* x) {
  std::array<float, 32> weights;
  float square_sum = 0.0f;
  for (int i = 0; i < 32; ++i) square_sum += x[i] * x[i];
  const float rms = std::sqrt(square_sum / 32.0f);
  float low = x[0], high = x[0], sum_w = 0.0f, sum_x = 0.0f;
  for (std::size_t i = 0; i < 32; ++i) {
    weights[i] = rms + std::fabs(x[i]);
    low = std::min(low, x[i]);
    high = std::max(high, x[i]);
    sum_w += weights[i];
    sum_x += weights[i] * x[i];
  }
  low = std::min(low, 0.0f);  // the minimum is stored without a sign
  if (high == low) return {0.0f, low};

  std::array<float, 32> codes;
  auto set_codes = [&](float factor, float minimum) {
    for (std::size_t i = 0; i < 32; ++i) codes[i] = static_cast<float>(to_code(factor * (x[i] - minimum), 0, 15));
  };
  auto error_of = [&](const Line& line) {
    float error = 0.0f;
    for (std::size_t i = 0; i < 32; ++i) {
      const float difference = line.scale * codes[i] + line.minimum - x[i];
      error += weights[i] * (difference * difference);
    }
    return error;
  };

  Line best{1.0f / (15.0f / (high - low)), low};
  set_codes(15.0f / (high - low), low);
  float best_error = error_of(best);
  for (int step = 0; step <= 20; ++step) {
    set_codes((-1.0f + 0.1f * static_cast<float>(step) + 15.0f) / (high - best.minimum), best.minimum);
    float sum_l = 0.0f, sum_l2 = 0.0f, sum_xl = 0.0f;
    for (std::size_t i = 0; i < 32; ++i) {
      const float weighted = weights[i] * codes[i];
      sum_l += weighted;
      sum_l2 += weighted * codes[i];
      sum_xl += weighted * x[i];
    }
    const float determinant = sum_w * sum_l2 - sum_l * sum_l;
    if (!(determinant > 0.0f)) continue;
    Line line{(sum_w * sum_xl - sum_x * sum_l) / determinant, (sum_l2 * sum_x - sum_l * sum_xl) / determinant};
    if (line.minimum > 0.0f) line = {sum_xl / sum_l2, 0.0f};
    const float error = error_of(line);
    if (error < best_error) {
      best = line;
      best_error = error;
    }
  }
  return best;
}

/// The scale for 16 values with codes -32 to 31 that makes the sum of squared errors small, each weighted by its
/// square. Steps of 1/10 code around the plain scale are tried.
float fit_scale(const float* x) {
  float extreme = 0.0f;
  for (int i = 0; i < 16; ++i) {
    if (std::fabs(x[i]) > std::fabs(extreme)) extreme = x[i];
  }
  if (std::fabs(extreme) < 1e-15f) return 0.0f;
  float scale = 0.0f, gain = 0.0f;
  auto attempt = [&](int step) {
    const float factor = -(32.0f + 0.1f * static_cast<float>(step)) / extreme;
    float sum_xl = 0.0f, sum_l2 = 0.0f;
    for (int i = 0; i < 16; ++i) {
      const auto code = static_cast<float>(to_code(factor * x[i], -32, 31));
      const float weight = x[i] * x[i];
      sum_xl += weight * x[i] * code;
      sum_l2 += weight * code * code;
    }
    if (sum_l2 > 0.0f && (step == 0 || sum_xl * sum_xl > gain * sum_l2)) {
      scale = sum_xl / sum_l2;
      gain = scale * sum_xl;
    }
  };
  attempt(0);
  for (int step = -9; step <= 9; ++step) {
    if (step != 0) attempt(step);
  }
  return scale;
}

}  // namespace

void quantize(const float* values, Q4_K& block) {
  const std::array<float, 256> x = limited(values);
  std::array<Line, 8> lines;
  float max_scale = 0.0f, max_offset = 0.0f;
  for (std::size_t group = 0; group < 8; ++group) {
    lines[group] = fit_line(x.data() + group * 32);
    max_scale = std::max(max_scale, lines[group].scale);
    max_offset = std::max(max_offset, -lines[group].minimum);
  }
  block = {.d = to_scale(max_scale / 63.0f), .dmin = to_scale(max_offset / 63.0f), .scales = {}, .qs = {}};
  const float d = f16_to_float(block.d), dmin = f16_to_float(block.dmin);
  const float scale_factor = max_scale > 0.0f ? 63.0f / max_scale : 0.0f;
  const float offset_factor = max_offset > 0.0f ? 63.0f / max_offset : 0.0f;
  for (std::size_t group = 0; group < 8; ++group) {
    const ScaleMin whole{to_code(scale_factor * lines[group].scale, 0, 63),
                         to_code(offset_factor * -lines[group].minimum, 0, 63)};
    pack_scale_min(whole, static_cast<int>(group), block.scales);
    const float scale = d * static_cast<float>(whole.scale), offset = dmin * static_cast<float>(whole.minimum);
    if (scale == 0.0f) continue;
    for (std::size_t i = 0; i < 32; ++i) {
      const int code = to_code((x[group * 32 + i] + offset) / scale, 0, 15);
      block.qs[group / 2 * 32 + i] |= static_cast<Byte>(code << (group % 2 * 4));
    }
  }
}

void quantize(const float* values, Q6_K& block) {
  const std::array<float, 256> x = limited(values);
  std::array<float, 16> scales;
  float extreme = 0.0f;
  for (std::size_t group = 0; group < 16; ++group) {
    scales[group] = fit_scale(x.data() + group * 16);
    if (std::fabs(scales[group]) > std::fabs(extreme)) extreme = scales[group];
  }
  block = {};
  if (std::fabs(extreme) < 1e-15f) return;
  const float factor = -128.0f / extreme;
  block.d = to_scale(1.0f / factor);
  const float d = f16_to_float(block.d);
  for (std::size_t group = 0; group < 16; ++group) {
    block.scales[group] = static_cast<std::int8_t>(to_code(factor * scales[group], -128, 127));
    const float scale = d * static_cast<float>(block.scales[group]);
    for (std::size_t i = group * 16; i < group * 16 + 16; ++i) {
      const int code = scale == 0.0f ? 32 : to_code(x[i] / scale, -32, 31) + 32;
      block.ql[i / 128 * 64 + i % 64] |= static_cast<Byte>((code & 15) << (i % 128 / 64 * 4));
      block.qh[i / 128 * 32 + i % 32] |= static_cast<Byte>(code >> 4 << (i % 128 / 32 * 2));
    }
  }
}

}  // namespace sluice::ggml
