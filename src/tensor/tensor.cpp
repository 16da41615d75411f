#include "tensor/tensor.h"

namespace sluice {

Shape::Shape(std::initializer_list<std::int64_t> sizes) {
  CHECK(sizes.size() <= sizes_.size());
  for (const std::int64_t size : sizes) sizes_[static_cast<std::size_t>(rank_++)] = size;
}

std::int64_t Shape::elements() const {
  std::int64_t product = 1;
  for (int i = 0; i < rank_; ++i) product *= (*this)[i];
  return product;
}

std::string Shape::to_string() const {
  std::string text = "[";
  for (int i = 0; i < rank_; ++i) text += fmt::format("{}{}", i == 0 ? "" : ", ", (*this)[i]);
  return text + "]";
}

Tensor::Tensor(void* data, DType dtype, Shape shape) : data_(data), dtype_(dtype), shape_(shape) {
  std::int64_t stride = 1;
  for (int i = shape.rank() - 1; i >= 0; --i) {
    strides_[static_cast<std::size_t>(i)] = stride;
    stride *= shape[i];
  }
}

bool Tensor::is_contiguous() const { return strides_ == Tensor(data_, dtype_, shape_).strides_; }

Tensor Tensor::slice(int dimension, std::int64_t begin, std::int64_t count) const {
  CHECK(dimension < rank() && begin >= 0 && count >= 0 && begin + count <= size(dimension),
        "{} .. {} of dimension {} of {}", begin, begin + count, dimension, shape_.to_string());
  Tensor part = *this;
  part.data_ = static_cast<std::byte*>(data_) + static_cast<std::size_t>(begin * stride(dimension)) * size_of(dtype_);
  std::array<std::int64_t, 4> sizes{};
  for (int i = 0; i < rank(); ++i) sizes[static_cast<std::size_t>(i)] = i == dimension ? count : size(i);
  switch (rank()) {
    case 1: part.shape_ = {sizes[0]}; break;
    case 2: part.shape_ = {sizes[0], sizes[1]}; break;
    case 3: part.shape_ = {sizes[0], sizes[1], sizes[2]}; break;
    default: part.shape_ = {sizes[0], sizes[1], sizes[2], sizes[3]}; break;
  }
  return part;
}

Tensor Tensor::reshaped(Shape shape) const {
  CHECK(is_contiguous() && shape.elements() == elements(), "{} as {}", shape_.to_string(), shape.to_string());
  return Tensor(data_, dtype_, shape);
}

Tensor Tensor::split_columns(std::int64_t a, std::int64_t b) const {
  CHECK(rank() == 2 && size(1) == a * b && stride(1) == 1, "{} by {} x {}", shape_.to_string(), a, b);
  Tensor view(data_, dtype_, {size(0), a, b});
  view.strides_[0] = stride(0);
  return view;
}

}  // namespace sluice
