#include "cpu/linear/panels.h"

namespace sluice {

std::string_view name_of(Layout layout) {
  switch (layout) {
    case Layout::bf16_panels: return "bf16 panels";
    case Layout::f16_panels: return "f16 panels";
    case Layout::f32_panels: return "f32 panels";
  }
  check_failed(__FILE__, __LINE__, "a layout", "");
}

const CpuWeight& cpu_weight(const Weight& weight) {
  const auto* own = dynamic_cast<const CpuWeight*>(&weight);
  CHECK(own != nullptr, "a weight of another backend: {}", weight.layout());
  return *own;
}

const CpuExpertWeights& cpu_weights(const ExpertWeights& weights) {
  const auto* own = dynamic_cast<const CpuExpertWeights*>(&weights);
  CHECK(own != nullptr, "weights of another backend: {}", weights.layout());
  return *own;
}

}  // namespace sluice
