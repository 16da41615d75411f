#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "cache/kv_pool.h"
#include "cache/state_pool.h"
#include "models/model.h"
#include "ops/ops.h"

namespace sluice {

/// Which rows of a step get logits.
enum class ScoredRows : std::uint8_t { none, last, all };

/// Some sequences of equal length with caches of their own, driven step by step without an engine: for measurements
/// and for logits of every row.
class SequenceBatch {
 public:
  /// Caches for `sequences` sequences of up to `max_tokens` tokens each. Throws DeviceError when they do not fit.
  SequenceBatch(Ops& ops, Model& model, std::int64_t sequences, std::int64_t max_tokens);
  SequenceBatch(const SequenceBatch&) = delete;
  SequenceBatch& operator=(const SequenceBatch&) = delete;

  /// Sees the results while their memory lives.
  using Reader = std::function<void(const ForwardResult& result)>;
  /// Adds `ids` [sequences * count] to the sequences, sequence by sequence.
  void forward(std::span<const std::int32_t> ids, ScoredRows scored, const Reader& read);
  /// forward() with logits of every row, then the draft head over the same hidden rows, of one sequence: next_ids[t] is
  /// the token that follows row t. It may lack the last row's, which then is not drafted.
  void forward_and_draft(std::span<const std::int32_t> ids, std::span<const std::int32_t> next_ids, const Reader& read,
                         const Reader& read_draft);
  /// Tokens of each sequence so far.
  std::int64_t tokens() const { return tokens_; }
  /// Takes the caches as holding this many tokens, whatever they hold: for measurements.
  void assume_tokens(std::int64_t tokens) { tokens_ = tokens; }
  /// Writes something finite to all KV caches, so that their memory is really there.
  void touch_caches();
  std::uint64_t cache_bytes() const { return cache_bytes_; }

 private:
  BatchView make_batch(std::span<const std::int32_t> ids, ScoredRows scored);
  Tensor upload(const std::vector<std::int32_t>& values, const Shape& shape);

  Ops& ops_;
  Model& model_;
  std::int64_t sequences_, blocks_per_sequence_, tokens_ = 0;
  std::uint64_t cache_bytes_ = 0;
  KvPool kv_;
  StatePool state_;
  LayerCaches caches_;
};

}  // namespace sluice
