#pragma once
#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>

#include "base/check.h"
#include "tensor/dtype.h"

namespace sluice {

/// Sizes of up to four dimensions, outermost first.
class Shape {
 public:
  Shape() = default;
  Shape(std::initializer_list<std::int64_t> sizes);
  int rank() const { return rank_; }
  std::int64_t operator[](int dimension) const { return sizes_[static_cast<std::size_t>(dimension)]; }
  std::int64_t elements() const;
  std::string to_string() const;  // "[3, 4]"
  bool operator==(const Shape&) const = default;

 private:
  int rank_ = 0;
  std::array<std::int64_t, 4> sizes_{};
};

/// A typed view of memory that somebody else owns, on whatever device that memory is. Rows (the innermost
/// dimension) are contiguous; outer dimensions may be strided.
class Tensor {
 public:
  Tensor() = default;
  /// Contiguous.
  Tensor(void* data, DType dtype, Shape shape);

  DType dtype() const { return dtype_; }
  const Shape& shape() const { return shape_; }
  int rank() const { return shape_.rank(); }
  std::int64_t size(int dimension) const { return shape_[dimension]; }
  /// Elements from one index of `dimension` to the next.
  std::int64_t stride(int dimension) const { return strides_[static_cast<std::size_t>(dimension)]; }
  std::int64_t elements() const { return shape_.elements(); }
  std::size_t bytes() const { return static_cast<std::size_t>(elements()) * size_of(dtype_); }
  bool is_contiguous() const;
  bool empty() const { return data_ == nullptr || elements() == 0; }
  void* data() const { return data_; }

  /// The elements as T; T's size must be that of the dtype.
  template <class T>
  T* as() const {
    CHECK(sizeof(T) == size_of(dtype_), "{} is not {} bytes wide", name_of(dtype_), sizeof(T));
    return static_cast<T*>(data_);
  }
  /// Row `index` of the outermost dimension.
  template <class T>
  T* row(std::int64_t index) const {
    return as<T>() + index * strides_[0];
  }

  /// Indices begin .. begin + count - 1 of one dimension.
  Tensor slice(int dimension, std::int64_t begin, std::int64_t count) const;
  /// The same elements under another shape; needs contiguity.
  Tensor reshaped(Shape shape) const;
  /// [rows, a * b] as [rows, a, b]; rows may be strided.
  Tensor split_columns(std::int64_t a, std::int64_t b) const;

 private:
  void* data_ = nullptr;
  DType dtype_ = DType::f32;
  Shape shape_;
  std::array<std::int64_t, 4> strides_{};
};

}  // namespace sluice
