#include "weights/formats/parts.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.h"

namespace sluice {

std::vector<std::string> names_beside(const Checkpoint& checkpoint, std::string_view base,
                                      std::initializer_list<std::string_view> needed,
                                      std::initializer_list<std::string_view> optional) {
  std::vector<std::string> names;
  for (const std::string_view name : needed) {
    names.push_back(fmt::format("{}.{}", base, name));
    if (checkpoint.find(names.back()) == nullptr) return {};
  }
  for (const std::string_view name : optional) {
    std::string full = fmt::format("{}.{}", base, name);
    if (checkpoint.find(full) != nullptr) names.push_back(std::move(full));
  }
  return names;
}

const StoredTensor* tensor_beside(const Checkpoint& checkpoint, std::string_view base, std::string_view name) {
  return checkpoint.find(fmt::format("{}.{}", base, name));
}

const StoredPart* part_of(const SourceMatrix& matrix, std::string_view name) {
  const auto found = std::ranges::find_if(matrix.parts, [&](const StoredPart& part) {
    const std::string_view full = part.tensor->name;
    return full.ends_with(name) && full.size() > name.size() && full[full.size() - name.size() - 1] == '.';
  });
  return found == matrix.parts.end() ? nullptr : &*found;
}

void expect_shape(const StoredTensor& tensor, std::initializer_list<std::int64_t> shape) {
  if (std::ranges::equal(tensor.shape, shape)) return;
  fail_shape(tensor, fmt::format("[{}]", fmt::join(shape, ", ")));
}

void fail_shape(const StoredTensor& tensor, std::string_view expected) {
  fail<LoadError>("{}: tensor \"{}\" has shape {}, expected {}", tensor.source, tensor.name, tensor.shape_text(),
                  expected);
}

void expect_dtype(const StoredTensor& tensor, std::initializer_list<DType> dtypes) {
  if (tensor.block_type == nullptr && std::ranges::find(dtypes, tensor.dtype) != dtypes.end()) return;
  std::string expected;
  for (const DType dtype : dtypes) expected += fmt::format("{}{}", expected.empty() ? "" : " or ", name_of(dtype));
  fail<LoadError>("{}: tensor \"{}\" is {}, expected {}", tensor.source, tensor.name, tensor.type_name(), expected);
}

void expect_one_float(const StoredTensor& tensor) {
  expect_dtype(tensor, {DType::f32, DType::bf16, DType::f16});
  if (tensor.elements() != 1) fail_shape(tensor, "one number");
}

namespace {

FactorType type_of(const StoredTensor& tensor) {
  const auto type = factor_type(tensor.dtype);
  CHECK(type.has_value(), "{} {}", tensor.name, tensor.type_name());
  return *type;
}

void check_finite(const StoredTensor& tensor, float scale, std::int64_t index) {
  if (std::isfinite(scale)) return;
  fail<LoadError>("{}: tensor \"{}\" holds {} at element {}; a scale must be finite", tensor.source, tensor.name, scale,
                  index);
}

}  // namespace

float finite_scale(const StoredPart& part, std::int64_t index) {
  const float scale = load_factor(type_of(*part.tensor), part.bytes, index);
  check_finite(*part.tensor, scale, index);
  return scale;
}

void copy_scales(const StoredPart& part, std::int64_t index, std::int64_t stride, std::int64_t count, std::byte* out) {
  const FactorType type = type_of(*part.tensor);
  const std::size_t size = size_of(type);
  for (std::int64_t i = 0; i < count; ++i, index += stride) {
    check_finite(*part.tensor, load_factor(type, part.bytes, index), index);
    std::memcpy(out + static_cast<std::size_t>(i) * size, part.bytes + static_cast<std::size_t>(index) * size, size);
  }
}

std::uint32_t word_at(const StoredPart& part, std::int64_t index) {
  std::uint32_t word;
  std::memcpy(&word, part.bytes + index * 4, sizeof word);
  return word;
}

void unpack_nibbles(const std::byte* bytes, std::int64_t count, std::uint8_t* codes) {
  for (std::int64_t i = 0; i < count; ++i) {
    const auto byte = std::to_integer<std::uint8_t>(bytes[i / 2]);
    codes[i] = i % 2 == 0 ? byte & 15 : byte >> 4;
  }
}

}  // namespace sluice
