#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "models/qwen3_5_config.h"
#include "models/rank_runs.h"
#include "weights/checkpoint.h"

namespace sluice {

/// How a tensor is shared out. `segments`: by rows, but several runs of them. `heads`: by rows, whole heads. `experts`:
/// each rank has whole experts.
enum class Split : std::uint8_t { replicated, rows, columns, segments, heads, experts };
std::string_view name_of(Split split);

/// One tensor of the checkpoint, and what each rank keeps of it.
struct PlannedTensor {
  const StoredTensor* tensor = nullptr;  // the checkpoint's
  Split split = Split::replicated;
  int axis = -1;   // of the stored shape, along which `ranks` counts; -1: not cut
  RankRuns ranks;  // of a cut tensor
  int owner = -1;  // of a tensor that is not cut: the one rank that keeps it; -1: all do
  int copies = 1;  // ranks that keep each element
  std::string reason;

  bool kept_by(int rank) const;
  /// Of what that rank keeps; empty where it keeps nothing.
  std::vector<std::int64_t> shape(int rank) const;
  std::uint64_t bytes(int rank) const;
};

/// How a model's tensors are shared out over the ranks of a group, each of which computes part of every layer.
struct ParallelPlan {
  int ranks = 1;
  std::vector<PlannedTensor> tensors;  // every one that the model loads, once
  std::vector<std::uint64_t> bytes;    // of each rank
};

/// Plans for a checkpoint that audit_model passes; reads no bytes but those of orders of columns. Delta nets are cut by
/// key heads with their value heads, attention by heads (KV heads are repeated where there are more ranks), MLPs by
/// intermediate columns, experts likewise or by experts, embedding and head by vocabulary. A layer's part whose
/// quantization blocks a cut would go through is replicated where that costs little. Throws LoadError that says what
/// cannot be split and what would do.
ParallelPlan plan_parallel(const Qwen3_5Config& config, const Checkpoint& checkpoint, int ranks);

}  // namespace sluice
