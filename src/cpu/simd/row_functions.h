#pragma once
// Elementwise loops and norms of RowKernels; included by the translation units of one instruction set each.
#include "cpu/simd/row_kernels.h"
#include "cpu/simd/vector.h"

namespace sluice {
namespace {

void add(float* out, const float* x, std::int64_t n) {
  for_each_vector(n, [&](std::int64_t i, std::int64_t some) {
    store_some(out + i, load_some(out + i, some) + load_some(x + i, some), some);
  });
}

void add_scaled(float* out, const float* x, float scale, std::int64_t n) {
  const Vector factor = splat(scale);
  for_each_vector(n, [&](std::int64_t i, std::int64_t some) {
    store_some(out + i, fma(factor, load_some(x + i, some), load_some(out + i, some)), some);
  });
}

void silu_mul(float* out, const float* gate, const float* up, std::int64_t n) {
  for_each_vector(n, [&](std::int64_t i, std::int64_t some) {
    const Vector g = load_some(gate + i, some);
    store_some(out + i, g * sigmoid(g) * load_some(up + i, some), some);
  });
}

void sigmoid_mul(float* x, const float* gate, std::int64_t n) {
  for_each_vector(n, [&](std::int64_t i, std::int64_t some) {
    store_some(x + i, load_some(x + i, some) * sigmoid(load_some(gate + i, some)), some);
  });
}

void exp_into(float* out, const float* x, std::int64_t n) {
  for_each_vector(n,
                  [&](std::int64_t i, std::int64_t some) { store_some(out + i, exp(load_some(x + i, some)), some); });
}

float sum_of_squares(const float* x, std::int64_t n) {
  Vector sums[4] = {splat(0.0f), splat(0.0f), splat(0.0f), splat(0.0f)};
  std::int64_t i = 0;
  for (; i + 4 * Vector::lanes <= n; i += 4 * Vector::lanes) {
#pragma GCC unroll 4
    for (int part = 0; part < 4; ++part) {
      const Vector a = load(x + i + part * Vector::lanes);
      sums[part] = fma(a, a, sums[part]);
    }
  }
  for_each_vector(n - i, [&](std::int64_t offset, std::int64_t some) {
    const Vector a = load_some(x + i + offset, some);
    sums[0] = fma(a, a, sums[0]);
  });
  return reduce_add((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

float inverse_rms(const float* x, float eps, std::int64_t n) {
  return 1.0f / __builtin_sqrtf(sum_of_squares(x, n) / static_cast<float>(n) + eps);
}

void rms_norm(float* out, const float* x, const float* weight, float eps, std::int64_t n) {
  const Vector scale = splat(inverse_rms(x, eps, n));
  for_each_vector(n, [&](std::int64_t i, std::int64_t some) {
    store_some(out + i, load_some(x + i, some) * scale * load_some(weight + i, some), some);
  });
}

void gated_rms_norm(float* out, const float* x, const float* gate, const float* weight, float eps, bool swish,
                    std::int64_t n) {
  const Vector scale = splat(inverse_rms(x, eps, n));
  for_each_vector(n, [&](std::int64_t i, std::int64_t some) {
    const Vector normal = load_some(x + i, some) * scale * load_some(weight + i, some);
    const Vector g = load_some(gate + i, some);
    const Vector activated = swish ? g * sigmoid(g) : sigmoid(g);
    store_some(out + i, normal * activated, some);
  });
}

void l2_norm(float* out, const float* x, float eps, float scale, std::int64_t n) {
  const Vector factor = splat(scale / __builtin_sqrtf(sum_of_squares(x, n) + eps));
  for_each_vector(
      n, [&](std::int64_t i, std::int64_t some) { store_some(out + i, load_some(x + i, some) * factor, some); });
}

void convolve(float* out, const float* const* inputs, const float* weights, std::int64_t weight_stride, int taps,
              std::int64_t n) {
  for_each_vector(n, [&](std::int64_t i, std::int64_t some) {
    Vector sum = splat(0.0f);
    for (int tap = 0; tap < taps; ++tap) {
      sum = fma(load_some(weights + tap * weight_stride + i, some), load_some(inputs[tap] + i, some), sum);
    }
    store_some(out + i, sum * sigmoid(sum), some);
  });
}

void rotate(float* x, const float* cosines, const float* sines, std::int64_t n) {
  for_each_vector(n, [&](std::int64_t i, std::int64_t some) {
    const Vector a = load_some(x + i, some);
    const Vector b = load_some(x + n + i, some);
    const Vector c = load_some(cosines + i, some);
    const Vector s = load_some(sines + i, some);
    store_some(x + i, a * c - b * s, some);
    store_some(x + n + i, b * c + a * s, some);
  });
}

void to_bf16(std::uint16_t* out, const float* x, std::int64_t n) {
  std::int64_t i = 0;
  for (; i + Vector::lanes <= n; i += Vector::lanes) store_bf16(out + i, load(x + i));
  if (i < n) {
    std::uint16_t last[Vector::lanes];
    store_bf16(last, load_first(x + i, n - i));
    for (std::int64_t j = i; j < n; ++j) out[j] = last[j - i];
  }
}

void from_bf16(float* out, const std::uint16_t* x, std::int64_t n) {
  std::int64_t i = 0;
  for (; i + Vector::lanes <= n; i += Vector::lanes) store(out + i, load_bf16(x + i));
  if (i < n) {
    std::uint16_t last[Vector::lanes] = {};
    for (std::int64_t j = i; j < n; ++j) last[j - i] = x[j];
    store_first(out + i, load_bf16(last), n - i);
  }
}

}  // namespace
}  // namespace sluice
