#include "weights/formats/fp4.h"

#include <cstring>

#include "base/error.h"
#include "weights/formats/parts.h"

namespace sluice {

namespace {

constexpr std::int64_t nvfp4_group = 16, mxfp4_group = 32;

bool holds_bytes(const StoredTensor* tensor) {
  return tensor != nullptr && tensor->block_type == nullptr && tensor->dtype == DType::u8;
}

std::vector<std::string> detect_modelopt(const Checkpoint& checkpoint, std::string_view base) {
  if (!holds_bytes(tensor_beside(checkpoint, base, "weight"))) return {};
  return names_beside(checkpoint, base, {"weight", "weight_scale", "weight_scale_2"}, {"input_scale"});
}

std::vector<std::string> detect_packed(const Checkpoint& checkpoint, std::string_view base) {
  if (!holds_bytes(tensor_beside(checkpoint, base, "weight_packed"))) return {};
  return names_beside(checkpoint, base, {"weight_packed", "weight_scale", "weight_global_scale"},
                      {"input_global_scale"});
}

template <int packed>
std::vector<std::string> detect_mxfp4(const Checkpoint& checkpoint, std::string_view base) {
  const std::string_view values = packed != 0 ? "weight_packed" : "weight";
  const StoredTensor* scales = tensor_beside(checkpoint, base, "weight_scale");
  if (!holds_bytes(tensor_beside(checkpoint, base, values)) || scales == nullptr || scales->dtype == DType::f8_e4m3) {
    return {};
  }
  return names_beside(checkpoint, base, {values, "weight_scale"}, {"input_scale"});
}

void check_values(const SourceMatrix& matrix, std::int64_t group) {
  if (matrix.in % group != 0) {
    fail<LoadError>("{}: tensor \"{}\": rows of {} numbers are no whole groups of {}", matrix.values().source,
                    matrix.values().name, matrix.in, group);
  }
  expect_shape(matrix.values(), {matrix.out, matrix.in / 2});
  expect_shape(*matrix.parts[1].tensor, {matrix.out, matrix.in / group});
}

void check_nvfp4(const SourceMatrix& matrix) {
  check_values(matrix, nvfp4_group);
  expect_dtype(*matrix.parts[1].tensor, {DType::f8_e4m3});
  expect_one_float(*matrix.parts[2].tensor);
}

void check_mxfp4(const SourceMatrix& matrix) {
  check_values(matrix, mxfp4_group);
  expect_dtype(*matrix.parts[1].tensor, {DType::u8, DType::f8_e8m0});
}

Coding e2m1_coding(FactorType scales, std::int64_t group, std::int64_t in) {
  Coding coding;
  coding.table = e2m1_halves;
  coding.scales = scales;
  coding.group = group;
  coding.supers = FactorType::f32;
  coding.super_group = in;
  return coding;
}

std::optional<Coding> nvfp4_coding(const SourceMatrix& matrix) {
  return e2m1_coding(FactorType::f8_e4m3, nvfp4_group, matrix.in);
}

std::optional<Coding> mxfp4_coding(const SourceMatrix& matrix) {
  return e2m1_coding(FactorType::f8_e8m0, mxfp4_group, matrix.in);
}

void read_codes(const SourceMatrix& matrix, std::int64_t row, const CodedRow& out) {
  const std::byte* values = matrix.parts[0].bytes;
  unpack_nibbles(values + row * (matrix.in / 2), matrix.in, out.codes);
}

void set_super(const CodedRow& out, float factor) {
  const float super = 0.5f * factor;  // the table counts in halves
  std::memcpy(out.supers, &super, sizeof super);
}

template <int divides>
void read_nvfp4(const SourceMatrix& matrix, std::int64_t row, const CodedRow& out) {
  read_codes(matrix, row, out);
  const std::int64_t groups = matrix.in / nvfp4_group;
  copy_scales(matrix.parts[1], row * groups, 1, groups, out.scales);
  const StoredTensor& global = *matrix.parts[2].tensor;
  const float factor = finite_scale(matrix.parts[2], 0);
  if (divides != 0 && factor == 0.0f) {
    fail<LoadError>("{}: tensor \"{}\" is 0, and the values are to be divided by it", global.source, global.name);
  }
  set_super(out, divides != 0 ? 1.0f / factor : factor);
}

void read_mxfp4(const SourceMatrix& matrix, std::int64_t row, const CodedRow& out) {
  read_codes(matrix, row, out);
  const StoredTensor& scales = *matrix.parts[1].tensor;
  const std::int64_t groups = matrix.in / mxfp4_group;
  std::memcpy(out.scales, matrix.parts[1].bytes + row * groups, static_cast<std::size_t>(groups));
  for (std::int64_t group = 0; group < groups; ++group) {
    if (out.scales[group] == std::byte{255}) {
      fail<LoadError>("{}: tensor \"{}\" holds NaN in row {}", scales.source, scales.name, row);
    }
  }
  set_super(out, 1.0f);
}

template <std::int64_t group>
std::vector<PartGrid> grids(const SourceMatrix& matrix) {
  std::vector<PartGrid> all(matrix.parts.size(), PartGrid::whole());
  all[0] = {0, 1, 1, 2};
  all[1] = {0, 1, 1, group};
  return all;
}

}  // namespace

const Format modelopt_nvfp4_format{"nvfp4",      detect_modelopt, check_nvfp4,       nullptr,
                                   nvfp4_coding, read_nvfp4<0>,   grids<nvfp4_group>};
const Format packed_nvfp4_format{"nvfp4",      detect_packed, check_nvfp4,       nullptr,
                                 nvfp4_coding, read_nvfp4<1>, grids<nvfp4_group>};
const Format mxfp4_format{"mxfp4", detect_mxfp4<0>, check_mxfp4, nullptr, mxfp4_coding, read_mxfp4, grids<mxfp4_group>};
const Format packed_mxfp4_format{"mxfp4",      detect_mxfp4<1>, check_mxfp4,       nullptr,
                                 mxfp4_coding, read_mxfp4,      grids<mxfp4_group>};

}  // namespace sluice
