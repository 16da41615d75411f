#include "weights/checkpoint.h"

#include <fmt/format.h>

#include "weights/ggml_blocks.h"

namespace sluice {

std::int64_t StoredTensor::elements() const {
  std::int64_t product = 1;
  for (const std::int64_t size : shape) product *= size;
  return product;
}

std::uint64_t StoredTensor::byte_size() const {
  const auto count = static_cast<std::uint64_t>(elements());
  if (block_type == nullptr) return count * size_of(dtype);
  return count / static_cast<std::uint64_t>(block_type->values) * static_cast<std::uint64_t>(block_type->bytes);
}

std::string_view StoredTensor::type_name() const { return block_type == nullptr ? name_of(dtype) : block_type->name; }

std::string StoredTensor::shape_text() const {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) text += fmt::format("{}{}", i == 0 ? "" : ", ", shape[i]);
  return text + "]";
}

std::string without_numbers(std::string_view name) {
  std::string pattern;
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find('.', begin), name.size());
    const std::string_view part = name.substr(begin, end - begin);
    const bool is_number = !part.empty() && part.find_first_not_of("0123456789") == std::string_view::npos;
    if (begin > 0) pattern += '.';
    pattern += is_number ? "*" : part;
    begin = end + 1;
  }
  return pattern;
}
}  // namespace sluice
