#include "weights/formats/word_columns.h"

#include <array>

#include "base/error.h"
#include "weights/formats/column_groups.h"
#include "weights/formats/parts.h"

namespace sluice {

namespace {

/// Row 8 i + r of a run of eight lies in nibble place[r] of AWQ's words.
constexpr std::array<int, 8> awq_place{0, 4, 1, 5, 2, 6, 3, 7};

/// Whether the words hold 8 rows each; else they hold columns. One tensor beside them may be misshapen.
bool packs_rows(const StoredTensor& values, const StoredTensor& scales, const StoredTensor& zeros) {
  const auto columns = [](const StoredTensor& tensor) { return tensor.shape.size() == 2 ? tensor.shape[1] : 0; };
  const std::int64_t words = columns(values);
  return columns(zeros) == words || (columns(scales) % 8 == 0 && columns(scales) / 8 == words);
}

std::vector<std::string> names(const Checkpoint& checkpoint, std::string_view base, bool of_rows,
                               std::initializer_list<std::string_view> optional) {
  const StoredTensor *values = tensor_beside(checkpoint, base, "qweight"),
                     *scales = tensor_beside(checkpoint, base, "scales"),
                     *zeros = tensor_beside(checkpoint, base, "qzeros");
  if (values == nullptr || scales == nullptr || zeros == nullptr) return {};
  if (packs_rows(*values, *scales, *zeros) != of_rows) return {};
  return names_beside(checkpoint, base, {"qweight", "scales", "qzeros"}, optional);
}

std::vector<std::string> detect_gptq(const Checkpoint& checkpoint, std::string_view base) {
  return names(checkpoint, base, false, {"g_idx"});
}

std::vector<std::string> detect_awq(const Checkpoint& checkpoint, std::string_view base) {
  return names(checkpoint, base, true, {});
}

std::int64_t gptq_bits(const SourceMatrix& matrix) {
  const StoredTensor& values = matrix.values();
  for (const std::int64_t bits : {4, 8}) {
    if (matrix.in * bits % 32 == 0 && values.shape == std::vector{matrix.in * bits / 32, matrix.out}) return bits;
  }
  fail_shape(values, fmt::format("[{}, {}] of 4-bit or [{}, {}] of 8-bit numbers", matrix.in / 8, matrix.out,
                                 matrix.in / 4, matrix.out));
}

std::int64_t groups_of(const SourceMatrix& matrix) {
  const StoredTensor& scales = *matrix.parts[1].tensor;
  const bool of_any_length = part_of(matrix, "g_idx") != nullptr;
  if (scales.shape.size() != 2 || scales.shape[1] != matrix.out || scales.shape[0] < 1 || scales.shape[0] > matrix.in ||
      (!of_any_length && matrix.in % scales.shape[0] != 0)) {
    fail_shape(scales, fmt::format("[groups of {}, {}]", matrix.in, matrix.out));
  }
  return scales.shape[0];
}

void check_factors(const SourceMatrix& matrix, std::int64_t bits) {
  expect_dtype(matrix.values(), {DType::i32});
  expect_dtype(*matrix.parts[1].tensor, {DType::f16, DType::bf16, DType::f32});
  expect_dtype(*matrix.parts[2].tensor, {DType::i32});
  expect_shape(*matrix.parts[2].tensor, {groups_of(matrix), matrix.out * bits / 32});
  if (matrix.out * bits % 32 != 0) fail_shape(*matrix.parts[2].tensor, "zero points of whole words");
}

void check_gptq(const SourceMatrix& matrix) {
  const std::int64_t bits = gptq_bits(matrix);
  check_factors(matrix, bits);
  if (const StoredPart* order = part_of(matrix, "g_idx")) check_column_groups(*order->tensor, matrix.in);
}

void check_awq(const SourceMatrix& matrix) {
  if (matrix.out % 8 != 0) fail_shape(matrix.values(), "rows in runs of 8");
  expect_shape(matrix.values(), {matrix.in, matrix.out / 8});
  check_factors(matrix, 4);
}

Coding coding_of(const SourceMatrix& matrix, std::int64_t bits) {
  Coding coding;
  coding.codes = bits == 4 ? CodeKind::table : CodeKind::int8;
  coding.table = signed_nibbles;
  coding.scales = *factor_type(matrix.parts[1].tensor->dtype);
  const StoredPart* order = part_of(matrix, "g_idx");
  const std::int64_t groups = groups_of(matrix);
  coding.group = order == nullptr ? matrix.in / groups : group_length(*order, groups, matrix.in);
  coding.offsets = FactorType::i8;
  coding.zero_points = true;
  return coding;
}

std::optional<Coding> gptq_coding(const SourceMatrix& matrix) { return coding_of(matrix, gptq_bits(matrix)); }
std::optional<Coding> awq_coding(const SourceMatrix& matrix) { return coding_of(matrix, 4); }

std::vector<std::int32_t> gptq_order(const SourceMatrix& matrix) {
  const StoredPart* order = part_of(matrix, "g_idx");
  if (order == nullptr) return {};
  return columns_by_group(*order, groups_of(matrix), matrix.in);
}

/// Codes and zero points are both counted from 2^(bits - 1), so that the codes fit a signed byte.
std::byte zero_point(std::uint32_t zero, std::int64_t bits) {
  return static_cast<std::byte>(static_cast<std::int32_t>(zero) - (1 << (bits - 1)));
}

void read_gptq(const SourceMatrix& matrix, std::int64_t row, const CodedRow& out) {
  const std::int64_t bits = gptq_bits(matrix), groups = groups_of(matrix), per_word = 32 / bits;
  const std::uint32_t mask = (1u << bits) - 1u, added = matrix.hints.zero_points_less_one ? 1u : 0u;
  for (std::int64_t column = 0; column < matrix.in; ++column) {
    const std::uint32_t word = word_at(matrix.parts[0], column / per_word * matrix.out + row);
    const auto code = static_cast<std::uint8_t>(word >> (column % per_word * bits) & mask);
    out.codes[column] = bits == 4 ? code : code ^ 0x80;
  }
  copy_scales(matrix.parts[1], row, matrix.out, groups, out.scales);
  for (std::int64_t group = 0; group < groups; ++group) {
    const std::uint32_t word = word_at(matrix.parts[2], group * (matrix.out / per_word) + row / per_word);
    out.offsets[group] = zero_point(((word >> (row % per_word * bits) & mask) + added) & mask, bits);
  }
}

void read_awq(const SourceMatrix& matrix, std::int64_t row, const CodedRow& out) {
  const std::int64_t groups = groups_of(matrix), words = matrix.out / 8;
  const int shift = 4 * awq_place[static_cast<std::size_t>(row % 8)];
  for (std::int64_t column = 0; column < matrix.in; ++column) {
    out.codes[column] = static_cast<std::uint8_t>(word_at(matrix.parts[0], column * words + row / 8) >> shift & 15u);
  }
  copy_scales(matrix.parts[1], row, matrix.out, groups, out.scales);
  for (std::int64_t group = 0; group < groups; ++group) {
    const std::uint32_t word = word_at(matrix.parts[2], group * words + row / 8);
    out.offsets[group] = zero_point(word >> shift & 15u, 4);
  }
}

/// Of tensors [columns or groups, rows]; the values' words run along the columns in one format, along rows in the
/// other.
std::vector<PartGrid> grids_of(const SourceMatrix& matrix, std::int64_t bits, bool words_of_columns) {
  const std::int64_t per_word = 32 / bits, group = coding_of(matrix, bits).group;
  const int group_axis = groups_of(matrix) > 1 ? 0 : -1;
  std::vector<PartGrid> all{{1, 0, words_of_columns ? 1 : per_word, words_of_columns ? per_word : 1},
                            {1, group_axis, 1, group},
                            {1, group_axis, per_word, group}};
  if (part_of(matrix, "g_idx") != nullptr) all.push_back({-1, 0, 1, 1});
  return all;
}

std::vector<PartGrid> gptq_grids(const SourceMatrix& matrix) { return grids_of(matrix, gptq_bits(matrix), true); }
std::vector<PartGrid> awq_grids(const SourceMatrix& matrix) { return grids_of(matrix, 4, false); }

}  // namespace

const Format gptq_format{"gptq", detect_gptq, check_gptq, nullptr, gptq_coding, read_gptq, gptq_grids, gptq_order};
const Format awq_format{"awq", detect_awq, check_awq, nullptr, awq_coding, read_awq, awq_grids};

}  // namespace sluice
