#include "weights/format.h"

#include <vector>

namespace sluice {

namespace {

/// Rows by their codes and factors: the definition of every coding.
void dequantize_coded(const SourceMatrix& matrix, const Coding& coding, std::int64_t first, std::int64_t count,
                      float* out) {
  const std::int64_t in = matrix.in;
  const std::int64_t supers = coding.super_group > 0 ? coding.super_groups(in) : 0;
  const auto bytes = [](FactorType type, std::int64_t factors) {
    return std::vector<std::byte>(size_of(type) * static_cast<std::size_t>(factors));
  };
  std::vector<std::uint8_t> codes(static_cast<std::size_t>(in));
  std::vector<std::byte> scales = bytes(coding.scales, coding.groups(in)), super_scales = bytes(coding.supers, supers);
  std::vector<std::byte> offsets = bytes(coding.offsets, coding.groups(in));
  std::vector<std::byte> super_offsets = bytes(coding.super_offsets, supers);
  const CodedRow row{codes.data(), scales.data(), super_scales.data(), offsets.data(), super_offsets.data()};
  for (std::int64_t r = 0; r < count; ++r) {
    matrix.format->read_row(matrix, first + r, row);
    for (std::int64_t c = 0; c < in; ++c) {
      const std::int64_t group = c / coding.group, super = supers > 0 ? c / coding.super_group : 0;
      const float scale =
          load_factor(coding.scales, scales.data(), group) * load_factor(coding.supers, super_scales.data(), super);
      float offset = 0.0f;
      if (coding.offsets != FactorType::none) {
        const float unit = coding.zero_points ? scale : load_factor(coding.super_offsets, super_offsets.data(), super);
        offset = load_factor(coding.offsets, offsets.data(), group) * unit;
      }
      out[r * in + c] = number_of(coding, codes[static_cast<std::size_t>(c)]) * scale - offset;
    }
  }
}

}  // namespace

void SourceMatrix::dequantize(std::int64_t first, std::int64_t count, float* out_values) const {
  CHECK(first >= 0 && count >= 0 && first + count <= out, "rows {} + {} of {}", first, count, out);
  if (format->dequantize != nullptr) return format->dequantize(*this, first, count, out_values);
  dequantize_coded(*this, *coding(), first, count, out_values);
}

std::optional<Coding> SourceMatrix::coding() const {
  return format->coding == nullptr ? std::nullopt : format->coding(*this);
}

std::span<const std::byte> SourceMatrix::plain_rows() const {
  const StoredTensor& tensor = *tensors.front();
  const std::size_t row_bytes = static_cast<std::size_t>(in) * size_of(tensor.dtype);
  return checkpoint->bytes(tensor).subspan(static_cast<std::size_t>(first_row) * row_bytes,
                                           static_cast<std::size_t>(out) * row_bytes);
}

}  // namespace sluice
