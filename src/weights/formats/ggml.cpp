#include "weights/formats/ggml.h"

#include <cmath>

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
  const StoredTensor& values = matrix.values();
  const BlockType& type = *values.block_type;
  const std::int64_t blocks = matrix.in / type.values;
  const std::byte* rows = matrix.parts[0].bytes;
  type.dequantize(rows + (matrix.first_row + first) * blocks * type.bytes, count * blocks, out);
}

std::optional<Coding> coding(const SourceMatrix& matrix) {
  return ggml::coding_of(*matrix.values().block_type, matrix.in);
}

/// Throws LoadError for a float16 factor that is not finite.
void check_halves(const StoredTensor& values, std::int64_t row, FactorType type, const std::byte* factors,
                  std::int64_t count) {
  if (type != FactorType::f16) return;
  for (std::int64_t i = 0; i < count; ++i) {
    if (std::isfinite(load_factor(type, factors, i))) continue;
    fail<LoadError>("{}: tensor \"{}\" has a scale that is not finite in row {}", values.source, values.name, row);
  }
}

void read_row(const SourceMatrix& matrix, std::int64_t row, const CodedRow& out) {
  const StoredTensor& values = matrix.values();
  const BlockType& type = *values.block_type;
  const std::int64_t row_bytes = matrix.in / type.values * type.bytes;
  const std::byte* rows = matrix.parts[0].bytes;
  ggml::read_row(type, rows + (matrix.first_row + row) * row_bytes, matrix.in, out);
  const Coding own = *coding(matrix);
  check_halves(values, row, own.scales, out.scales, own.groups(matrix.in));
  if (own.super_group == 0) return;
  check_halves(values, row, own.supers, out.supers, own.super_groups(matrix.in));
  check_halves(values, row, own.super_offsets, out.super_offsets, own.super_groups(matrix.in));
}

}  // namespace

const Format ggml_format{"ggml", detect, check, dequantize, coding, read_row};

}  // namespace sluice
