#include "weights/format.h"

#include <string>
#include <vector>

#include "base/error.h"

namespace sluice {

void SourceMatrix::dequantize(std::int64_t first, std::int64_t count, float* out_values) const {
  CHECK(first >= 0 && count >= 0 && first + count <= out, "rows {} + {} of {}", first, count, out);
  if (format->dequantize != nullptr) return format->dequantize(*this, first, count, out_values);
  const Coding own = *coding();
  const std::vector<std::int32_t> order = input_order();
  CodedRowBuffer buffer(own, in);
  for (std::int64_t row = first; row < first + count; ++row, out_values += in) {
    read_row(row, own, order, buffer);
    decode_row(own, buffer.row(), in, out_values);
    restore_order(order, out_values);
  }
}

std::optional<Coding> SourceMatrix::coding() const {
  return format->coding == nullptr ? std::nullopt : format->coding(*this);
}

std::vector<std::int32_t> SourceMatrix::input_order() const {
  return format->input_order == nullptr ? std::vector<std::int32_t>() : format->input_order(*this);
}

void SourceMatrix::read_row(std::int64_t row, const Coding& coding, std::span<const std::int32_t> order,
                            CodedRowBuffer& to) const {
  format->read_row(*this, row, to.row());
  if (!decodes_to_finite(coding, to.row(), in)) {
    fail<LoadError>("{}: tensor \"{}\": the scales of row {} are so large that its numbers are not finite",
                    values().source, values().name, row);
  }
  if (order.empty()) return;
  const std::vector<std::uint8_t> stored = to.codes;
  for (std::size_t column = 0; column < order.size(); ++column) {
    to.codes[column] = stored[static_cast<std::size_t>(order[column])];
  }
}

std::vector<PartGrid> SourceMatrix::grids() const {
  return format->grids == nullptr ? std::vector<PartGrid>{PartGrid{}} : format->grids(*this);
}

std::span<const std::byte> SourceMatrix::plain_rows() const {
  const std::size_t row_bytes = static_cast<std::size_t>(in) * size_of(values().dtype);
  return {parts.front().bytes + static_cast<std::size_t>(first_row) * row_bytes,
          static_cast<std::size_t>(out) * row_bytes};
}

std::optional<SourceMatrix> find_matrix(const Checkpoint& checkpoint, std::string_view base, std::int64_t out,
                                        std::int64_t in, const StorageHints& hints) {
  for (const Format* format : formats()) {
    const std::vector<std::string> names = format->detect(checkpoint, base);
    if (names.empty()) continue;
    SourceMatrix matrix{format, {}, 0, out, in, hints};
    for (const std::string& name : names) {
      const StoredTensor* tensor = checkpoint.find(name);
      matrix.parts.push_back({tensor, checkpoint.bytes(*tensor).data(), nullptr});
    }
    format->check(matrix);
    return matrix;
  }
  return std::nullopt;
}

}  // namespace sluice
