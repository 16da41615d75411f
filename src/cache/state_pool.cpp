#include "cache/state_pool.h"

#include <utility>

namespace sluice {

StatePool::StatePool(const CacheNeeds& needs, std::int64_t slots, CacheMemory memory) : memory_(std::move(memory)) {
  auto new_tensor = [this](const Shape& shape) {
    buffers_.push_back(memory_.allocate(static_cast<std::size_t>(shape.elements()) * size_of(DType::f32)));
    return buffers_.back().view(0, DType::f32, shape);
  };
  for (std::int64_t layer = 0; layer < needs.state_layers; ++layer) {
    const Tensor conv = new_tensor({slots, needs.conv_taps - 1, needs.conv_channels});
    layers_.push_back({conv, new_tensor({slots, needs.value_heads, needs.key_dim * needs.value_dim})});
  }
}

void StatePool::fill(std::int32_t slot, std::uint8_t value) const {
  for (const StateView& layer : layers_) {
    memory_.fill(layer.conv.slice(0, slot, 1), value);
    memory_.fill(layer.recurrent.slice(0, slot, 1), value);
  }
}

}  // namespace sluice
