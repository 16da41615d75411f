#pragma once
#include <span>

#include "base/thread_pool.h"
#include "cpu/linear/kernel.h"

namespace sluice {

/// Rows times one matrix in panels. All pointers are borrowed.
struct Product {
  const std::byte* weights = nullptr;
  const float* const* inputs = nullptr;  // [rows] rows of panels.in float32
  std::byte* packed = nullptr;           // packed_bytes() of scratch
  std::int64_t rows = 0;
  float* out = nullptr;  // [rows, panels.out], rows out_stride apart
  std::int64_t out_stride = 0;
  const std::int32_t* order = nullptr;  // of columns, as in Segment
};

/// Scratch of a product of so many rows.
std::size_t packed_bytes(const LinearKernel& kernel, const Panels& panels, std::int64_t rows);

/// Products with matrices of one shape, as one piece of parallel work. Every element of the results is the same
/// whatever the number of threads, rows and products.
void multiply(ThreadPool& pool, const LinearKernel& kernel, const Panels& panels, std::span<const Product> products);

}  // namespace sluice
