#pragma once
#include <string>
#include <vector>

#include "base/json.h"
#include "models/parallel_plan.h"

namespace sluice {

/// Planned tensors that differ only in the numbers of their layers and experts.
struct ParallelGroup {
  std::string name;
  PlannedTensor first;
  std::uint64_t count = 0;
  std::vector<std::uint64_t> tensors, bytes;  // of each rank
};

/// A plan for several ranks, for people; or why there is none.
struct ParallelSummary {
  int ranks = 1;
  std::string problem;  // empty: there is a plan
  std::vector<ParallelGroup> groups;
  std::vector<std::uint64_t> bytes;  // of each rank
};

ParallelSummary summarize_parallel(const Qwen3_5Config& config, const Checkpoint& checkpoint, int ranks);
Json parallel_json(const ParallelSummary& summary);
std::string parallel_text(const ParallelSummary& summary);

}  // namespace sluice
