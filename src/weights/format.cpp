#include "weights/format.h"

#include "weights/formats/plain.h"

namespace sluice {

void SourceMatrix::dequantize(std::int64_t first, std::int64_t count, float* out_values) const {
  CHECK(first >= 0 && count >= 0 && first + count <= out, "rows {} + {} of {}", first, count, out);
  format->dequantize(*this, first, count, out_values);
}

std::span<const std::byte> SourceMatrix::plain_rows() const {
  const StoredTensor& tensor = *tensors.front();
  const std::size_t row_bytes = static_cast<std::size_t>(in) * size_of(tensor.dtype);
  return checkpoint->bytes(tensor).subspan(static_cast<std::size_t>(first_row) * row_bytes,
                                           static_cast<std::size_t>(out) * row_bytes);
}

std::span<const Format* const> formats() {
  static constexpr const Format* table[] = {&plain_format};
  return table;
}

}  // namespace sluice
