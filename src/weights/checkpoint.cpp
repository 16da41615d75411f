#include "weights/checkpoint.h"

#include <fmt/format.h>

namespace sluice {

std::int64_t StoredTensor::elements() const {
  std::int64_t product = 1;
  for (const std::int64_t size : shape) product *= size;
  return product;
}

std::string StoredTensor::shape_text() const {
  std::string text = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) text += fmt::format("{}{}", i == 0 ? "" : ", ", shape[i]);
  return text + "]";
}

}  // namespace sluice
