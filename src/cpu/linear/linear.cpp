#include <vector>

#include "cpu/cpu_ops.h"
#include "cpu/linear/product.h"

namespace sluice {

Tensor CpuOps::linear(const Tensor& x, const Weight& w) {
  const CpuWeight& weight = cpu_weight(w);
  CHECK(x.rank() == 2 && x.dtype() == DType::f32 && x.size(1) == weight.in() && (weight.in() == 1 || x.stride(1) == 1),
        "{} {} by [{}, {}]", name_of(x.dtype()), x.shape().to_string(), weight.out(), weight.in());
  const std::int64_t rows = x.size(0);
  const Tensor result = allocate(DType::f32, {rows, weight.out()});
  std::vector<const float*> inputs(static_cast<std::size_t>(rows));
  for (std::int64_t row = 0; row < rows; ++row) inputs[static_cast<std::size_t>(row)] = x.row<float>(row);
  for (const Segment& segment : weight.segments()) {
    const Scope scope(*this);
    const Panels& panels = segment.panels;
    const LinearKernel& kernel = choose_linear_kernel(panels.layout, instruction_set_, compute_);
    auto* packed = static_cast<std::byte*>(arena_.allocate(packed_bytes(kernel, panels, rows)));
    const Product product{segment.data, inputs.data(), packed, rows, result.as<float>() + segment.first_row,
                          weight.out(), segment.order};
    multiply(pool_, kernel, panels, {&product, 1});
  }
  return result;
}

}  // namespace sluice
