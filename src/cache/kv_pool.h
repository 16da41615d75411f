#pragma once
#include <cstdint>
#include <vector>

#include "cache/cache_memory.h"
#include "ops/views.h"

namespace sluice {

/// Tokens of one KV block. A multiple of the delta net's chunk, so that blocks and chunks of a prefill end together.
inline constexpr std::int64_t kv_block_size = 64;

/// Blocks that hold this many tokens.
constexpr std::int64_t kv_blocks_for(std::int64_t tokens) { return (tokens + kv_block_size - 1) / kv_block_size; }

/// The memory of the KV blocks of all attention layers. Who uses which block is not known here.
class KvPool {
 public:
  KvPool(const CacheNeeds& needs, DType dtype, std::int64_t blocks, CacheMemory memory);

  /// In the order of the layers; the draft head's is last.
  const std::vector<KvView>& layers() const { return layers_; }
  void poison(std::int32_t block) const;

 private:
  CacheMemory memory_;
  std::vector<Buffer> buffers_;
  std::vector<KvView> layers_;
};

}  // namespace sluice
