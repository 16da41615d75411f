#include "weights/encode/encoder.h"

#include <algorithm>

#include "base/integers.h"
#include "weights/encode/forms.h"

namespace sluice {

std::span<const Encoder* const> encoders() {
  static constexpr const Encoder* table[] = {&bf16_encoder, &f16_encoder,  &f32_encoder,  &fp8_encoder,  &nvfp4_encoder,
                                             &int4_encoder, &q8_0_encoder, &q6_k_encoder, &q4_k_encoder, &q4_0_encoder};
  return table;
}

const Encoder* find_encoder(std::string_view name) {
  const auto found = std::ranges::find(encoders(), name, &Encoder::name);
  return found == encoders().end() ? nullptr : *found;
}

const Encoder& plain_encoder(DType dtype) {
  if (dtype == DType::f32 || dtype == DType::f64) return f32_encoder;
  return dtype == DType::f16 ? f16_encoder : bf16_encoder;
}

std::size_t part_bytes(const EncodedPart& part, std::int64_t rows) {
  const std::uint64_t all = part.tensor.byte_size();
  if (part.rows == 0) return all;
  const auto part_rows = static_cast<std::uint64_t>(part.tensor.shape.front());
  return all / part_rows * static_cast<std::uint64_t>(ceil_divide(rows, part.rows));
}

SourceMatrix encoded_tile(const Encoder& encoder, std::span<const EncodedPart> parts, const RowTile& tile,
                          std::span<std::byte* const> bytes, std::vector<StoredTensor>& tensors) {
  tensors.clear();
  for (const EncodedPart& part : parts) {
    StoredTensor& tensor = tensors.emplace_back(part.tensor);
    if (part.rows > 0) tensor.shape.front() = ceil_divide(tile.rows, part.rows);
  }
  SourceMatrix matrix{encoder.format, {}, 0, tile.rows, tile.in};
  for (std::size_t i = 0; i < tensors.size(); ++i) matrix.parts.push_back({&tensors[i], bytes[i]});
  return matrix;
}

}  // namespace sluice
