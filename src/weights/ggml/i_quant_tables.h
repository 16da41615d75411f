#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace sluice::ggml {

/// A codebook: points of `size` coordinates, each of them one of a few levels; `bits` say which, the first one lowest.
template <std::size_t size, int bits>
struct Grid {
  std::span<const std::uint16_t> points;
  std::array<float, 1 << bits> levels;

  std::array<float, size> point(std::size_t index) const {
    std::array<float, size> coordinates;
    unsigned packed = points[index];
    for (float& coordinate : coordinates) {
      coordinate = levels[packed & ((1u << bits) - 1u)];
      packed >>= bits;
    }
    return coordinates;
  }
};

extern const Grid<8, 2> iq1_grid;      // IQ1_S and IQ1_M
extern const Grid<8, 2> iq2_xxs_grid;  // levels of IQ2 are eight times 1, 3 and 5, roughly
extern const Grid<8, 2> iq2_xs_grid;
extern const Grid<8, 2> iq2_s_grid;
extern const Grid<4, 3> iq3_xxs_grid;
extern const Grid<4, 3> iq3_s_grid;

/// What the 16 codes of IQ4_NL and IQ4_XS stand for.
extern const std::array<std::int8_t, 16> iq4_levels;

}  // namespace sluice::ggml
