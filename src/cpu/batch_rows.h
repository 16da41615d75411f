#pragma once
#include <cstdint>

#include "ops/views.h"

namespace sluice {

/// One sequence of a batch: rows first .. first + count - 1, at tokens context .. context + count - 1.
struct SequenceRows {
  std::int64_t first, count, context;
};

inline SequenceRows sequence_rows(const BatchView& batch, std::int64_t sequence) {
  const auto* starts = batch.sequence_starts.as<std::int32_t>();
  const SequenceRows rows{starts[sequence], starts[sequence + 1] - starts[sequence],
                          batch.context_lengths.as<std::int32_t>()[sequence]};
  CHECK(rows.first >= 0 && rows.count >= 0 && rows.context >= 0 && rows.first + rows.count <= batch.rows(),
        "sequence {}: rows {} + {} of {}, context {}", sequence, rows.first, rows.count, batch.rows(), rows.context);
  return rows;
}

/// The state slot of a sequence, within 0 .. slots - 1.
inline std::int64_t state_slot(const BatchView& batch, std::int64_t sequence, std::int64_t slots) {
  const std::int64_t slot = batch.state_slots.as<std::int32_t>()[sequence];
  CHECK(slot >= 0 && slot < slots, "state slot {} of {}", slot, slots);
  return slot;
}

/// Where the blocks of one sequence's keys and values lie.
class SequenceBlocks {
 public:
  SequenceBlocks(const KvView& cache, const BatchView& batch, std::int64_t sequence)
      : cache_(cache),
        blocks_(batch.block_table.row<std::int32_t>(sequence)),
        count_(batch.block_table.size(1)),
        block_size_(cache.block_size()) {}
  std::int64_t block_size() const { return block_size_; }
  /// Elements from the start of keys or values to the head_dim elements of a token's head.
  std::int64_t offset(std::int64_t token, std::int64_t head) const {
    const std::int64_t index = token / block_size_;
    CHECK(index < count_ && blocks_[index] >= 0 && blocks_[index] < cache_.keys.size(0),
          "token {} of a sequence with {} blocks of {}", token, count_, block_size_);
    return blocks_[index] * cache_.keys.stride(0) + head * cache_.keys.stride(1) +
           token % block_size_ * cache_.keys.stride(2);
  }

 private:
  const KvView& cache_;
  const std::int32_t* blocks_;
  std::int64_t count_, block_size_;
};

/// Checks what SequenceBlocks takes for granted of a cache.
inline void check_cache(const KvView& cache, std::int64_t kv_heads, std::int64_t head_dim) {
  CHECK(cache.keys.rank() == 4 && cache.keys.shape() == cache.values.shape() &&
            cache.keys.dtype() == cache.values.dtype() && cache.keys.is_contiguous() && cache.values.is_contiguous() &&
            cache.keys.size(1) == kv_heads && cache.keys.size(3) == head_dim &&
            (cache.keys.dtype() == DType::bf16 || cache.keys.dtype() == DType::f32),
        "keys {} {}, values {}, for {} heads of {}", name_of(cache.keys.dtype()), cache.keys.shape().to_string(),
        cache.values.shape().to_string(), kv_heads, head_dim);
}

}  // namespace sluice
