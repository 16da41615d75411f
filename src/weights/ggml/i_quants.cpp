#include <array>
#include <bit>
#include <cstring>

#include "tensor/dtype.h"
#include "weights/ggml/blocks.h"
#include "weights/ggml/i_quant_tables.h"

namespace sluice::ggml {
namespace {

std::uint32_t load_u32(const Byte* bytes) {
  std::uint32_t value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

int nibble(const Byte* bytes, int i) { return bytes[i / 2] >> (i % 2 * 4) & 15; }

/// Seven signs are stored; the eighth makes their number even.
unsigned even_signs(std::uint32_t seven) {
  seven &= 127u;
  return seven | (static_cast<unsigned>(std::popcount(seven)) & 1u) << 7;
}

/// The coordinates of a grid point, times the scale, negative where `signs` has a bit.
template <std::size_t size, int bits>
void put_signed(const Grid<size, bits>& grid, std::size_t index, unsigned signs, float scale, float* out) {
  constexpr std::array sign{1.0f, -1.0f};
  const std::array<float, size> point = grid.point(index);
  for (std::size_t i = 0; i < size; ++i) out[i] = scale * point[i] * sign[signs >> i & 1u];
}

/// The coordinates of a grid point, shifted a little, times the scale.
void put_shifted(std::size_t index, bool down, float scale, float* out) {
  const std::array<float, 8> point = iq1_grid.point(index);
  const float shift = down ? -0.125f : 0.125f;
  for (std::size_t i = 0; i < 8; ++i) out[i] = scale * (point[i] + shift);
}

}  // namespace

void dequantize(const IQ1_S& block, float* out) {
  const float d = f16_to_float(block.d);
  for (int i = 0; i < 32; ++i) {
    const unsigned qh = block.qh[i / 4];
    const float scale = d * static_cast<float>(2 * (qh >> 12 & 7u) + 1);
    const unsigned high = qh >> (i % 4 * 3) & 7u;
    put_shifted(block.qs[i] | high << 8, (qh & 0x8000u) != 0, scale, out + i * 8);
  }
}

Half super_scale(const IQ1_M& block) {
  unsigned bits = 0;
  for (int i = 0; i < 4; ++i) bits |= static_cast<unsigned>(block.scales[i] >> 12) << (i * 4);
  return static_cast<Half>(bits);
}

void dequantize(const IQ1_M& block, float* out) {
  const float d = f16_to_float(super_scale(block));
  for (int i = 0; i < 32; ++i) {
    const int scale = block.scales[i / 8] >> (i / 2 % 4 * 3) & 7;
    const auto qh = static_cast<unsigned>(nibble(block.qh, i));
    put_shifted(block.qs[i] | (qh & 7u) << 8, (qh & 8u) != 0, d * static_cast<float>(2 * scale + 1), out + i * 8);
  }
}

void dequantize(const IQ2_XXS& block, float* out) {
  const float d = f16_to_float(block.d);
  for (int group = 0; group < 8; ++group) {
    const Byte* points = block.qs + group * 8;
    const std::uint32_t signs = load_u32(points + 4);
    const float scale = d * (0.5f + static_cast<float>(signs >> 28)) * 0.25f;
    for (int i = 0; i < 4; ++i) {
      put_signed(iq2_xxs_grid, points[i], even_signs(signs >> (i * 7)), scale, out + group * 32 + i * 8);
    }
  }
}

void dequantize(const IQ2_XS& block, float* out) {
  const float d = f16_to_float(block.d);
  for (int i = 0; i < 32; ++i) {
    const float scale = d * (0.5f + static_cast<float>(nibble(block.scales, i / 2))) * 0.25f;
    put_signed(iq2_xs_grid, block.qs[i] & 511u, even_signs(block.qs[i] >> 9), scale, out + i * 8);
  }
}

void dequantize(const IQ2_S& block, float* out) {
  const float d = f16_to_float(block.d);
  for (int i = 0; i < 32; ++i) {
    const float scale = d * (0.5f + static_cast<float>(nibble(block.scales, i / 2))) * 0.25f;
    const unsigned high = block.qh[i / 4] >> (i % 4 * 2) & 3u;
    put_signed(iq2_s_grid, block.qs[i] | high << 8, block.signs[i], scale, out + i * 8);
  }
}

void dequantize(const IQ3_XXS& block, float* out) {
  const float d = f16_to_float(block.d);
  for (int group = 0; group < 8; ++group) {
    const std::uint32_t signs = load_u32(block.scales + group * 4);
    const float scale = d * (0.5f + static_cast<float>(signs >> 28)) * 0.5f;
    for (int i = 0; i < 8; ++i) {
      const unsigned four = even_signs(signs >> (i / 2 * 7)) >> (i % 2 * 4);
      put_signed(iq3_xxs_grid, block.qs[group * 8 + i], four, scale, out + group * 32 + i * 4);
    }
  }
}

void dequantize(const IQ3_S& block, float* out) {
  const float d = f16_to_float(block.d);
  for (int i = 0; i < 64; ++i) {
    const float scale = d * static_cast<float>(1 + 2 * nibble(block.scales, i / 8));
    const unsigned high = block.qh[i / 8] >> (i % 8) & 1u;
    const unsigned four = static_cast<unsigned>(nibble(block.signs, i));
    put_signed(iq3_s_grid, block.qs[i] | high << 8, four, scale, out + i * 4);
  }
}

void dequantize(const IQ4_NL& block, float* out) {
  const float d = f16_to_float(block.d);
  for (int i = 0; i < 16; ++i) {
    out[i] = d * static_cast<float>(iq4_levels[block.qs[i] & 15]);
    out[i + 16] = d * static_cast<float>(iq4_levels[block.qs[i] >> 4]);
  }
}

void dequantize(const IQ4_XS& block, float* out) {
  const float d = f16_to_float(block.d);
  for (int group = 0; group < 8; ++group) {
    const int high = block.scales_h >> (group * 2) & 3;
    const float scale = d * static_cast<float>((nibble(block.scales_l, group) | high << 4) - 32);
    for (int i = 0; i < 16; ++i) {
      const Byte q = block.qs[group * 16 + i];
      out[group * 32 + i] = scale * static_cast<float>(iq4_levels[q & 15]);
      out[group * 32 + i + 16] = scale * static_cast<float>(iq4_levels[q >> 4]);
    }
  }
}

}  // namespace sluice::ggml
