#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "cache/id_pool.h"

namespace sluice {

/// What changed hands: slots that must be zeroed before use, and what may be poisoned before that.
struct CacheChanges {
  std::vector<std::int32_t> released_blocks, released_slots;
  std::vector<std::int32_t> taken_slots;
};

/// The ids of both pools, and what changed since somebody last took `changes`.
struct CachePools {
  CachePools(std::int64_t block_count, std::int64_t slot_count) : blocks(block_count), slots(slot_count) {}
  IdPool blocks, slots;
  CacheChanges changes;
};

/// One sequence's share of the pools: KV blocks in order, and its state slot. Gives all back when it dies.
class SequenceCache {
 public:
  /// Takes nothing yet; the pools must outlive it.
  explicit SequenceCache(CachePools& pools) : pools_(pools) {}
  ~SequenceCache() { release(); }
  SequenceCache(const SequenceCache&) = delete;
  SequenceCache& operator=(const SequenceCache&) = delete;

  /// Takes a slot and the blocks for this many tokens. False, with nothing taken, when the pools have not enough.
  bool grow_to(std::int64_t tokens);
  void release();

  std::span<const std::int32_t> blocks() const { return blocks_; }
  std::int32_t slot() const { return slot_; }  // -1: holds nothing

 private:
  CachePools& pools_;
  std::vector<std::int32_t> blocks_;
  std::int32_t slot_ = -1;
};

}  // namespace sluice
