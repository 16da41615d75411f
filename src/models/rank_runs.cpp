#include "models/rank_runs.h"

#include <algorithm>

#include "base/check.h"
#include "base/integers.h"

namespace sluice {

namespace {

/// Adds a run, as part of the last one where it continues it.
void add_run(std::vector<Run>& runs, Run run) {
  if (run.count == 0) return;
  if (!runs.empty() && runs.back().begin + runs.back().count == run.begin) {
    runs.back().count += run.count;
  } else {
    runs.push_back(run);
  }
}

}  // namespace

std::int64_t length_of(const std::vector<Run>& runs) {
  std::int64_t length = 0;
  for (const Run& run : runs) length += run.count;
  return length;
}

RankRuns even_runs(std::int64_t total, int ranks, std::int64_t unit) {
  const std::int64_t units = ceil_divide(total, unit);
  RankRuns all(static_cast<std::size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    const std::int64_t begin = std::min(total, units * rank / ranks * unit);
    const std::int64_t end = std::min(total, units * (rank + 1) / ranks * unit);
    add_run(all[static_cast<std::size_t>(rank)], {begin, end - begin});
  }
  return all;
}

RankRuns shared_head_runs(std::int64_t heads, int ranks) {
  if (heads >= ranks) return even_runs(heads, ranks);
  RankRuns all;
  for (int rank = 0; rank < ranks; ++rank) all.push_back({{rank * heads / ranks, 1}});
  return all;
}

RankRuns value_head_runs(std::int64_t key_heads, std::int64_t value_heads, bool tiled, int ranks) {
  if (!tiled) return even_runs(value_heads, ranks);
  RankRuns all = even_runs(key_heads, ranks);
  for (std::vector<Run>& runs : all) {
    const std::vector<Run> first = std::move(runs);
    runs.clear();
    for (std::int64_t tile = 0; tile < value_heads; tile += key_heads) {
      for (const Run& run : first) add_run(runs, {tile + run.begin, run.count});
    }
  }
  return all;
}

RankRuns scaled(RankRuns runs, std::int64_t per_head) {
  for (std::vector<Run>& of_rank : runs) {
    for (Run& run : of_rank) run = {run.begin * per_head, run.count * per_head};
  }
  return runs;
}

RankRuns joined(const std::vector<RankRuns>& segments, const std::vector<std::int64_t>& sizes) {
  CHECK(!segments.empty() && segments.size() == sizes.size());
  RankRuns all(segments.front().size());
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < segments.size(); ++i) {
    for (std::size_t rank = 0; rank < all.size(); ++rank) {
      for (const Run& run : segments[i][rank]) add_run(all[rank], {begin + run.begin, run.count});
    }
    begin += sizes[i];
  }
  return all;
}

}  // namespace sluice
