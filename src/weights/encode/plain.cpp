#include "weights/formats/plain.h"

#include <cmath>
#include <cstring>

#include "base/error.h"
#include "weights/encode/forms.h"

namespace sluice {

namespace {

template <DType dtype>
std::vector<EncodedPart> parts(std::int64_t out, std::int64_t in) {
  return {{{"weight", dtype, {out, in}, ""}}};
}

void encode_f32(const RowTile& tile, std::span<std::byte* const> parts) {
  std::memcpy(parts[0], tile.values, static_cast<std::size_t>(tile.rows * tile.in) * sizeof(float));
}

template <std::uint16_t (*convert)(float)>
void encode_halves(const RowTile& tile, std::span<std::byte* const> parts) {
  std::byte* out = parts[0];
  for (std::int64_t i = 0; i < tile.rows * tile.in; ++i, out += sizeof(std::uint16_t)) {
    const std::uint16_t bits = convert(tile.values[i]);
    std::memcpy(out, &bits, sizeof bits);
  }
}

std::uint16_t to_f16(float value) {
  const std::uint16_t bits = float_to_f16(value);
  if (!std::isfinite(f16_to_float(bits))) fail<Error>("{} is more than float16 can hold; use another type", value);
  return bits;
}

}  // namespace

const Encoder bf16_encoder{"bf16", &plain_format, 32, false, 1, parts<DType::bf16>, encode_halves<float_to_bf16>};
const Encoder f16_encoder{"f16", &plain_format, 32, false, 1, parts<DType::f16>, encode_halves<to_f16>};
const Encoder f32_encoder{"f32", &plain_format, 32, false, 1, parts<DType::f32>, encode_f32};

}  // namespace sluice
