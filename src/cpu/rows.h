#pragma once
#include <algorithm>
#include <cstdint>

#include "tensor/tensor.h"

namespace sluice {

/// A float32 tensor [rows, n] or [rows, heads, n] as rows of heads; outer dimensions may be strided.
struct HeadRows {
  explicit HeadRows(const Tensor& x)
      : data(x.as<float>()),
        rows(x.size(0)),
        heads(x.rank() == 3 ? x.size(1) : 1),
        n(x.size(x.rank() - 1)),
        row_stride(x.stride(0)),
        head_stride(x.rank() == 3 ? x.stride(1) : 0) {
    CHECK(x.dtype() == DType::f32 && (x.rank() == 2 || x.rank() == 3), "{} {}", name_of(x.dtype()),
          x.shape().to_string());
    CHECK(n == 1 || x.stride(x.rank() - 1) == 1, "columns of {} lie {} apart", x.shape().to_string(),
          x.stride(x.rank() - 1));
  }
  float* at(std::int64_t row, std::int64_t head = 0) const { return data + row * row_stride + head * head_stride; }

  float* data;
  std::int64_t rows, heads, n, row_stride, head_stride;
};

/// How many rows of so many elements make a piece of work that is worth handing to another thread.
inline std::int64_t grain_of_rows(std::int64_t elements_a_row) {
  constexpr std::int64_t elements = 16384;
  return std::max<std::int64_t>(1, elements / std::max<std::int64_t>(1, elements_a_row));
}

}  // namespace sluice
