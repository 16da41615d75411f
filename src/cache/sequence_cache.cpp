#include "cache/sequence_cache.h"

#include "cache/kv_pool.h"

namespace sluice {

bool SequenceCache::grow_to(std::int64_t tokens) {
  const std::int64_t missing = kv_blocks_for(tokens) - static_cast<std::int64_t>(blocks_.size());
  if (missing > pools_.blocks.available()) return false;
  if (slot_ < 0) {
    if (pools_.slots.available() == 0) return false;
    slot_ = pools_.slots.take();
    pools_.changes.taken_slots.push_back(slot_);
  }
  for (std::int64_t i = 0; i < missing; ++i) blocks_.push_back(pools_.blocks.take());
  return true;
}

void SequenceCache::release() {
  for (const std::int32_t block : blocks_) {
    pools_.blocks.give_back(block);
    pools_.changes.released_blocks.push_back(block);
  }
  blocks_.clear();
  if (slot_ < 0) return;
  pools_.slots.give_back(slot_);
  pools_.changes.released_slots.push_back(slot_);
  slot_ = -1;
}

}  // namespace sluice
