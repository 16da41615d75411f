#include "apps/inspect_parallel.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "apps/tensor_groups.h"
#include "base/error.h"

namespace sluice {

namespace {

/// What tensors of a group have in common.
using GroupKey = std::tuple<std::string, std::string, std::string, Split, int, bool>;

GroupKey key_of(const PlannedTensor& planned) {
  return {without_numbers(planned.tensor->name),
          std::string(planned.tensor->type_name()),
          planned.tensor->shape_text(),
          planned.split,
          planned.axis,
          planned.owner >= 0};
}

std::vector<ParallelGroup> group(const ParallelPlan& plan) {
  std::map<GroupKey, ParallelGroup> groups;
  for (const PlannedTensor& planned : plan.tensors) {
    GroupKey key = key_of(planned);
    std::string name = std::get<0>(key);
    ParallelGroup& group = groups[std::move(key)];
    if (group.count++ == 0) {
      group.name = std::move(name);
      group.first = planned;
      group.tensors.resize(static_cast<std::size_t>(plan.ranks));
      group.bytes = group.tensors;
    }
    for (int rank = 0; rank < plan.ranks; ++rank) {
      const auto index = static_cast<std::size_t>(rank);
      group.tensors[index] += planned.kept_by(rank) ? 1 : 0;
      group.bytes[index] += planned.bytes(rank);
    }
  }
  std::vector<ParallelGroup> list;
  for (auto& [key, group] : groups) list.push_back(std::move(group));
  return list;
}

/// The shape of what a rank keeps of a tensor that it has.
std::vector<std::int64_t> shape_of(const ParallelGroup& group, int rank) {
  return group.first.owner >= 0 ? group.first.tensor->shape : group.first.shape(rank);
}

Json rank_json(const ParallelGroup& group, int rank) {
  const auto index = static_cast<std::size_t>(rank);
  Json json = {{"tensors", group.tensors[index]}, {"bytes", group.bytes[index]}, {"shape", shape_of(group, rank)}};
  if (group.first.axis < 0) return json;
  Json runs = Json::array();
  for (const Run& run : group.first.ranks[index]) runs.push_back({run.begin, run.count});
  json["runs"] = std::move(runs);
  return json;
}

Json group_json(const ParallelGroup& group, int ranks) {
  Json json = {{"name", group.name},
               {"count", group.count},
               {"dtype", group.first.tensor->type_name()},
               {"shape", group.first.tensor->shape},
               {"split", name_of(group.first.split)},
               {"copies", group.first.copies},
               {"reason", group.first.reason},
               {"ranks", Json::array()}};
  if (group.first.axis >= 0) json["axis"] = group.first.axis;
  for (int rank = 0; rank < ranks; ++rank) json["ranks"].push_back(rank_json(group, rank));
  return json;
}

}  // namespace

ParallelSummary summarize_parallel(const Qwen3_5Config& config, const Checkpoint& checkpoint, int ranks) {
  ParallelSummary summary;
  summary.ranks = ranks;
  try {
    const ParallelPlan plan = plan_parallel(config, checkpoint, ranks);
    summary.groups = group(plan);
    summary.bytes = plan.bytes;
  } catch (const LoadError& error) {
    summary.problem = error.what();
  }
  return summary;
}

Json parallel_json(const ParallelSummary& summary) {
  Json json = {{"ranks", summary.ranks}, {"possible", summary.problem.empty()}};
  if (!summary.problem.empty()) {
    json["problem"] = summary.problem;
    return json;
  }
  json["bytes_per_rank"] = summary.bytes;
  json["groups"] = Json::array();
  for (const ParallelGroup& group : summary.groups) json["groups"].push_back(group_json(group, summary.ranks));
  return json;
}

std::string parallel_text(const ParallelSummary& summary) {
  std::string text = fmt::format("Split over {} rank{}\n", summary.ranks, summary.ranks == 1 ? "" : "s");
  if (!summary.problem.empty()) return text + fmt::format("  NOT POSSIBLE: {}\n", summary.problem);
  text += fmt::format("  largest rank {}, smallest {}\n", gibibytes(*std::ranges::max_element(summary.bytes)),
                      gibibytes(*std::ranges::min_element(summary.bytes)));
  std::size_t name_width = 4, shape_width = 5;
  const auto shape_text = [](const ParallelGroup& group) {
    return fmt::format("[{}]", fmt::join(shape_of(group, 0), ", "));
  };
  for (const ParallelGroup& group : summary.groups) {
    name_width = std::max(name_width, group.name.size());
    shape_width = std::max(shape_width, shape_text(group).size());
  }
  for (const ParallelGroup& group : summary.groups) {
    text += fmt::format("  {:<{}}  {:>5} x {:<{}}  {:<10}  {:>11}  {}\n", group.name, name_width, group.tensors[0],
                        shape_text(group), shape_width, name_of(group.first.split), gibibytes(group.bytes[0]),
                        group.first.reason);
  }
  return text;
}

}  // namespace sluice
