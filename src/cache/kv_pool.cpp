#include "cache/kv_pool.h"

#include <utility>

namespace sluice {

KvPool::KvPool(const CacheNeeds& needs, DType dtype, std::int64_t blocks, CacheMemory memory)
    : memory_(std::move(memory)) {
  const Shape shape{blocks, needs.kv_heads, kv_block_size, needs.head_dim};
  const std::size_t bytes = static_cast<std::size_t>(shape.elements()) * size_of(dtype);
  auto new_tensor = [&] {
    buffers_.push_back(memory_.allocate(bytes));
    return buffers_.back().view(0, dtype, shape);
  };
  for (std::int64_t layer = 0; layer < needs.kv_layers; ++layer) {
    const Tensor keys = new_tensor();
    layers_.push_back({keys, new_tensor()});
  }
}

void KvPool::poison(std::int32_t block) const {
  for (const KvView& layer : layers_) {
    memory_.fill(layer.keys.slice(0, block, 1), cache_poison);
    memory_.fill(layer.values.slice(0, block, 1), cache_poison);
  }
}

}  // namespace sluice
