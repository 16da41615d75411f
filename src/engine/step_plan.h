#pragma once
#include <cstdint>
#include <vector>

#include "cache/sequence_cache.h"
#include "engine/request.h"

namespace sluice {

/// Tokens first .. first + count - 1 of a sequence, to be run in one step.
struct StepItem {
  RequestId sequence = 0;
  std::int64_t first = 0, count = 0;
  bool score = false;            // the last of them is the last one known: a token is sampled after it
  std::int64_t scored_rows = 0;  // so many of its last rows need logits; all but a sampled one report on the prompt
  const SequenceCache* cache = nullptr;  // holds room for them; belongs to the scheduler, valid until apply()
};

/// What one step runs: sequences that decode first, then pieces of prefills.
struct StepPlan {
  std::vector<StepItem> items;
  std::int64_t scored_rows() const {
    std::int64_t sum = 0;
    for (const StepItem& item : items) sum += item.scored_rows;
    return sum;
  }
  std::int64_t rows() const {
    std::int64_t sum = 0;
    for (const StepItem& item : items) sum += item.count;
    return sum;
  }
};

/// What became of a sequence that was scored.
struct StepResult {
  RequestId sequence = 0;
  bool finished = false;  // otherwise it has one token more
};

}  // namespace sluice
