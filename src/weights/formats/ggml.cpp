#include "weights/formats/ggml.h"

#include "base/error.h"
#include "weights/formats/parts.h"
#include "weights/ggml/codings.h"
#include "weights/ggml_blocks.h"

namespace sluice {

namespace {

std::vector<std::string> detect(const Checkpoint& checkpoint, std::string_view base) {
  const StoredTensor* values = tensor_beside(checkpoint, base, "weight");
  if (values == nullptr || values->block_type == nullptr) return {};
  return {values->name};
}

void check(const SourceMatrix& matrix) { expect_shape(matrix.values(), {matrix.out, matrix.in}); }

void dequantize(const SourceMatrix& matrix, std::int64_t first, std::int64_t count, float* out) {
  const BlockType& type = *matrix.values().block_type;
  for (std::int64_t row = first; row < first + count; ++row, out += matrix.in) {
    type.dequantize(checked_blocks(matrix, row), matrix.in / type.values, out);
  }
}

std::optional<Coding> coding(const SourceMatrix& matrix) {
  return ggml::coding_of(*matrix.values().block_type, matrix.in);
}

void read_row(const SourceMatrix& matrix, std::int64_t row, const CodedRow& out) {
  ggml::read_row(*matrix.values().block_type, checked_blocks(matrix, row), matrix.in, out);
}

}  // namespace

const std::byte* checked_blocks(const SourceMatrix& matrix, std::int64_t row) {
  const StoredTensor& values = matrix.values();
  const BlockType& type = *values.block_type;
  const std::int64_t blocks = matrix.in / type.values;
  const std::byte* found = matrix.parts.front().bytes + (matrix.first_row + row) * blocks * type.bytes;
  if (type.finite(found, blocks)) return found;
  fail<LoadError>("{}: tensor \"{}\" has a scale that is not finite in row {}", values.source, values.name, row);
}

const Format ggml_format{"ggml", detect, check, dequantize, coding, read_row};

}  // namespace sluice
