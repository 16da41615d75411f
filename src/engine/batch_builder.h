#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "engine/request.h"
#include "ops/ops.h"

namespace sluice {

/// One sequence's part of a step.
struct BatchSequence {
  std::span<const TokenId> tokens;       // to run now
  std::int64_t context = 0;              // tokens in the caches before them
  std::span<const std::int32_t> blocks;  // KV blocks, with room for context + tokens
  std::int32_t slot = 0;                 // of the state
  std::int64_t scored_rows = 0;          // the logits of so many last tokens are wanted
};

/// Lays the rows of a step out for the device. Text only: the three positions of a row are equal.
class BatchBuilder {
 public:
  /// Step memory of the caller's Scope. Score rows are in the order of the sequences.
  BatchView build(std::span<const BatchSequence> sequences, Ops& ops);

 private:
  struct Part;
  std::vector<std::int32_t> host_;  // all arrays of a step, one after another
};

}  // namespace sluice
