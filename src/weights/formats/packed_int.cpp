#include "weights/formats/packed_int.h"

#include "base/error.h"
#include "weights/formats/column_groups.h"
#include "weights/formats/parts.h"

namespace sluice {

namespace {

std::vector<std::string> detect(const Checkpoint& checkpoint, std::string_view base) {
  const StoredTensor* values = tensor_beside(checkpoint, base, "weight_packed");
  if (values == nullptr || values->dtype != DType::i32) return {};
  return names_beside(checkpoint, base, {"weight_packed", "weight_scale"},
                      {"weight_shape", "weight_zero_point", "weight_g_idx", "input_scale"});
}

std::int64_t bits_of(const SourceMatrix& matrix) {
  const StoredTensor& values = matrix.values();
  for (const std::int64_t bits : {4, 8}) {
    if (matrix.in * bits % 32 == 0 && values.shape == std::vector{matrix.out, matrix.in * bits / 32}) return bits;
  }
  fail_shape(values, fmt::format("[{}, {}] of 4-bit or [{}, {}] of 8-bit numbers", matrix.out, matrix.in / 8,
                                 matrix.out, matrix.in / 4));
}

std::int64_t groups_of(const SourceMatrix& matrix) {
  const StoredTensor& scales = *matrix.parts[1].tensor;
  const bool of_any_length = part_of(matrix, "weight_g_idx") != nullptr;
  const bool rows = scales.shape == std::vector{matrix.out};
  const bool groups = scales.shape.size() == 2 && scales.shape[0] == matrix.out && scales.shape[1] > 0 &&
                      scales.shape[1] <= matrix.in && (of_any_length || matrix.in % scales.shape[1] == 0);
  if (!rows && !groups) fail_shape(scales, fmt::format("[{}, groups of {}]", matrix.out, matrix.in));
  return rows ? 1 : scales.shape[1];
}

void check(const SourceMatrix& matrix) {
  const std::int64_t bits = bits_of(matrix), groups = groups_of(matrix);
  expect_dtype(*matrix.parts[1].tensor, {DType::bf16, DType::f16, DType::f32});
  if (const StoredPart* shape = part_of(matrix, "weight_shape")) {
    expect_dtype(*shape->tensor, {DType::i64, DType::i32});
    expect_shape(*shape->tensor, {2});
  }
  if (const StoredPart* zeros = part_of(matrix, "weight_zero_point")) {
    expect_dtype(*zeros->tensor, {DType::i32});
    expect_shape(*zeros->tensor, {(matrix.out * bits + 31) / 32, groups});
  }
  if (const StoredPart* order = part_of(matrix, "weight_g_idx")) check_column_groups(*order->tensor, matrix.in);
}

std::optional<Coding> coding(const SourceMatrix& matrix) {
  Coding found;
  const bool four = bits_of(matrix) == 4;
  found.codes = four ? CodeKind::table : CodeKind::int8;
  found.table = signed_nibbles;
  found.scales = *factor_type(matrix.parts[1].tensor->dtype);
  const StoredPart* order = part_of(matrix, "weight_g_idx");
  const std::int64_t groups = groups_of(matrix);
  found.group = order == nullptr ? matrix.in / groups : group_length(*order, groups, matrix.in);
  if (part_of(matrix, "weight_zero_point") != nullptr) {
    found.offsets = FactorType::i8;
    found.zero_points = true;
  }
  return found;
}

std::vector<std::int32_t> input_order(const SourceMatrix& matrix) {
  const StoredPart* order = part_of(matrix, "weight_g_idx");
  if (order == nullptr) return {};
  return columns_by_group(*order, groups_of(matrix), matrix.in);
}

void read_row(const SourceMatrix& matrix, std::int64_t row, const CodedRow& out) {
  const std::int64_t bits = bits_of(matrix), groups = groups_of(matrix), row_bytes = matrix.in * bits / 8;
  const std::byte* values = matrix.parts[0].bytes + row * row_bytes;
  if (bits == 4) {
    unpack_nibbles(values, matrix.in, out.codes);
  } else {
    for (std::int64_t i = 0; i < matrix.in; ++i) out.codes[i] = std::to_integer<std::uint8_t>(values[i]) ^ 0x80;
  }
  copy_scales(matrix.parts[1], row * groups, 1, groups, out.scales);
  const StoredPart* zeros = part_of(matrix, "weight_zero_point");
  if (zeros == nullptr) return;
  const std::int64_t per_word = 32 / bits;
  for (std::int64_t group = 0; group < groups; ++group) {
    const std::uint32_t code =
        word_at(*zeros, row / per_word * groups + group) >> (row % per_word * bits) & ((1u << bits) - 1u);
    out.offsets[group] = static_cast<std::byte>(static_cast<std::int32_t>(code) - (1 << (bits - 1)));
  }
}

std::vector<PartGrid> grids(const SourceMatrix& matrix) {
  std::vector<PartGrid> all(matrix.parts.size(), PartGrid::whole());
  const std::int64_t per_word = 32 / bits_of(matrix), groups = groups_of(matrix), group = coding(matrix)->group;
  const int group_axis = groups > 1 ? 1 : -1;
  all[0] = {0, 1, 1, per_word};
  all[1] = {0, group_axis, 1, group};
  for (std::size_t i = 2; i < all.size(); ++i) {
    if (&matrix.parts[i] == part_of(matrix, "weight_zero_point")) all[i] = {0, group_axis, per_word, group};
    if (&matrix.parts[i] == part_of(matrix, "weight_g_idx")) all[i] = {-1, 0, 1, 1};
  }
  return all;
}

}  // namespace

const Format packed_int_format{"packed int", detect, check, nullptr, coding, read_row, grids, input_order};

}  // namespace sluice
