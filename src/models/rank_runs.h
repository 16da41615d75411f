#pragma once
#include <cstdint>
#include <vector>

namespace sluice {

/// begin .. begin + count - 1 of one dimension.
struct Run {
  std::int64_t begin = 0, count = 0;
  bool operator==(const Run&) const = default;
};

/// What each rank takes of one dimension: runs in the order in which it keeps them. Empty: that rank takes nothing.
using RankRuns = std::vector<std::vector<Run>>;

/// Elements of one rank's runs.
std::int64_t length_of(const std::vector<Run>& runs);

/// Neighbours: rank r takes total * r / ranks up to total * (r + 1) / ranks, in whole units (the last may be cut
/// short).
RankRuns even_runs(std::int64_t total, int ranks, std::int64_t unit = 1);
/// Heads that several ranks share where there are more ranks than heads: rank r takes head r * heads / ranks, or its
/// even run of them. One number divides the other.
RankRuns shared_head_runs(std::int64_t heads, int ranks);
/// Value heads of the key heads that even_runs(key_heads, ranks) gives each rank: value head h belongs to key head
/// h / (value_heads / key_heads), or if `tiled` to h % key_heads.
RankRuns value_head_runs(std::int64_t key_heads, std::int64_t value_heads, bool tiled, int ranks);

/// Runs of heads as runs of what they consist of.
RankRuns scaled(RankRuns runs, std::int64_t per_head);
/// Runs of segments that lie one behind another, `sizes` long: all of a rank's runs of the first, then of the second.
RankRuns joined(const std::vector<RankRuns>& segments, const std::vector<std::int64_t>& sizes);

}  // namespace sluice
