#include "weights/formats/byte_codes.h"

#include <cstring>

#include "base/error.h"
#include "base/integers.h"
#include "weights/formats/parts.h"

namespace sluice {

namespace {

constexpr std::int64_t block = 128;

/// Rows and columns that share a scale.
struct Grid {
  std::int64_t rows, columns;
};

Grid grid_of(const SourceMatrix& matrix) {
  const StoredTensor& scales = *matrix.parts[1].tensor;
  const std::int64_t out = matrix.out, in = matrix.in;
  const auto& shape = scales.shape;
  if (scales.elements() == 1) return {out, in};
  if (shape == std::vector{ceil_divide(out, block), ceil_divide(in, block)}) return {block, block};
  if (shape == std::vector{out} || shape == std::vector<std::int64_t>{out, 1}) return {1, in};
  if (shape.size() == 2 && shape[0] == out && shape[1] > 0 && in % shape[1] == 0) return {1, in / shape[1]};
  fail_shape(scales, fmt::format("one number, [{}], [{}, 1] or [{}, {}] for values [{}, {}]", out, out,
                                 ceil_divide(out, block), ceil_divide(in, block), out, in));
}

template <DType dtype>
std::vector<std::string> detect(const Checkpoint& checkpoint, std::string_view base) {
  const StoredTensor* values = tensor_beside(checkpoint, base, "weight");
  if (values == nullptr || values->dtype != dtype || values->block_type != nullptr) return {};
  for (const std::string_view scale : {"weight_scale_inv", "weight_scale"}) {
    auto names = names_beside(checkpoint, base, {"weight", scale}, {"input_scale"});
    if (!names.empty()) return names;
  }
  return {};
}

void check(const SourceMatrix& matrix) {
  expect_shape(matrix.values(), {matrix.out, matrix.in});
  expect_dtype(*matrix.parts[1].tensor, {DType::f32, DType::bf16, DType::f16, DType::f8_e8m0});
  grid_of(matrix);
}

template <CodeKind codes>
std::optional<Coding> coding(const SourceMatrix& matrix) {
  Coding found;
  found.codes = codes;
  found.scales = *factor_type(matrix.parts[1].tensor->dtype);
  found.group = grid_of(matrix).columns;
  return found;
}

template <CodeKind codes>
void read_row(const SourceMatrix& matrix, std::int64_t row, const CodedRow& out) {
  const StoredTensor& values = matrix.values();
  const auto in = static_cast<std::size_t>(matrix.in);
  std::memcpy(out.codes, matrix.parts[0].bytes + static_cast<std::size_t>(row) * in, in);
  if constexpr (codes == CodeKind::f8_e4m3) {
    bool nan = false;
    for (std::size_t i = 0; i < in; ++i) nan |= (out.codes[i] & 0x7f) == 0x7f;
    if (nan) fail<LoadError>("{}: tensor \"{}\" holds NaN in row {}", values.source, values.name, row);
  }
  const Grid grid = grid_of(matrix);
  const std::int64_t groups = ceil_divide(matrix.in, grid.columns);
  copy_scales(matrix.parts[1], row / grid.rows * groups, 1, groups, out.scales);
}

std::vector<PartGrid> grids(const SourceMatrix& matrix) {
  std::vector<PartGrid> all(matrix.parts.size(), PartGrid::whole());
  all[0] = PartGrid{};
  const Grid grid = grid_of(matrix);
  if (matrix.parts[1].tensor->elements() > 1) all[1] = {0, grid.columns < matrix.in ? 1 : -1, grid.rows, grid.columns};
  return all;
}

}  // namespace

const Format fp8_format{
    "fp8", detect<DType::f8_e4m3>, check, nullptr, coding<CodeKind::f8_e4m3>, read_row<CodeKind::f8_e4m3>, grids};
const Format int8_format{"int8", detect<DType::i8>, check, nullptr, coding<CodeKind::int8>, read_row<CodeKind::int8>,
                         grids};

}  // namespace sluice
