#include <vector>

#include "cpu/cpu_ops.h"
#include "cpu/linear/product.h"

namespace sluice {

Tensor CpuOps::linear(const Tensor& x, const Weight& w) {
  const CpuWeight& weight = cpu_weight(w);
  const Panels& panels = weight.panels();
  CHECK(x.rank() == 2 && x.dtype() == DType::f32 && x.size(1) == panels.in && (panels.in == 1 || x.stride(1) == 1),
        "{} {} by [{}, {}]", name_of(x.dtype()), x.shape().to_string(), panels.out, panels.in);
  const std::int64_t rows = x.size(0);
  const Tensor result = allocate(DType::f32, {rows, panels.out});
  const Scope scope(*this);
  const LinearKernel& kernel = choose_linear_kernel(panels.layout, instruction_set_, compute_);
  std::vector<const float*> inputs(static_cast<std::size_t>(rows));
  for (std::int64_t row = 0; row < rows; ++row) inputs[static_cast<std::size_t>(row)] = x.row<float>(row);
  auto* packed = static_cast<std::byte*>(arena_.allocate(packed_bytes(kernel, panels, rows)));
  const Product product{weight.data(), inputs.data(), packed, rows, result.as<float>()};
  multiply(pool_, kernel, panels, {&product, 1});
  return result;
}

}  // namespace sluice
