#include "models/parallel_plan.h"

#include <algorithm>
#include <unordered_set>

#include "base/check.h"
#include "base/error.h"
#include "models/parallel_pieces.h"
#include "models/qwen3_5_parts.h"
#include "weights/audit_placer.h"
#include "weights/fused_experts.h"
#include "weights/ggml_blocks.h"

namespace sluice {

namespace {

/// A size of the group that the checkpoint does not allow.
class CannotSplit : public LoadError {
 public:
  using LoadError::LoadError;
};

/// What may be replicated because cuts would go through blocks: at most this share of the checkpoint.
constexpr std::uint64_t replicated_share = 16;

/// Part of a layer that is cut as a whole, or not at all: what one matrix leaves apart, the next one sums up.
using Unit = std::vector<std::pair<Piece, Cut>>;

std::string problem_of(const Unit& unit) {
  for (const auto& [piece, cut] : unit) {
    if (std::string problem = piece.problem(cut.runs); !problem.empty()) return problem;
  }
  return "";
}

class Planner {
 public:
  Planner(const Qwen3_5Config& config, const Checkpoint& checkpoint, int ranks)
      : config_(config), checkpoint_(checkpoint), ranks_(ranks), root_(checkpoint, placer_) {}

  ParallelPlan plan();

 private:
  void check_heads() const;
  void vocabulary(const std::string& name);
  void layer(const std::string& prefix, bool full, bool dense);
  void attention(const std::string& prefix);
  void delta_net(const std::string& prefix);
  void mlp(const std::string& prefix, std::int64_t intermediate);
  void sparse_mlp(const std::string& prefix);
  void experts(const std::string& prefix);
  std::vector<std::pair<FusedExperts, std::int64_t>> fused_experts(const std::string& prefix) const;
  void share_experts(const std::vector<const StoredTensor*>& tensors, const std::string& reason);
  void draft_head(const std::string& prefix);
  void vision();

  Piece rows(const std::string& name, std::int64_t out, std::int64_t in) const {
    return matrix_piece(checkpoint_, name, out, in, Along::rows);
  }
  Piece columns(const std::string& name, std::int64_t out, std::int64_t in) const {
    return matrix_piece(checkpoint_, name, out, in, Along::columns);
  }
  Piece tensor(const std::string& name) const { return tensor_piece(checkpoint_, name); }
  bool has(const std::string& name) const { return root_.has(name); }

  void replicate(const Piece& piece, std::string_view reason) { add_whole(tensors_, piece, ranks_, reason); }
  void settle(const Unit& unit);
  void refuse_large_copies() const;
  void expect_all_planned() const;

  const Qwen3_5Config& config_;
  const Checkpoint& checkpoint_;
  int ranks_;
  AuditPlacer placer_;
  WeightScope root_;
  std::vector<PlannedTensor> tensors_;
  std::vector<std::string> not_loaded_;  // prefixes
  std::uint64_t replicated_for_blocks_ = 0;
  std::string first_problem_;
};

void Planner::check_heads() const {
  const auto expect = [this](bool fits, std::string_view what, std::int64_t heads) {
    if (!fits) {
      fail<CannotSplit>("{}: {} is {}, which {} ranks cannot share evenly", checkpoint_.describe(), what, heads,
                        ranks_);
    }
  };
  const bool any_full = std::ranges::find(config_.full_attention, true) != config_.full_attention.end();
  const bool any_delta = std::ranges::find(config_.full_attention, false) != config_.full_attention.end();
  expect(!any_delta || config_.key_heads % ranks_ == 0, "linear_num_key_heads", config_.key_heads);
  expect(!any_delta || config_.value_heads % ranks_ == 0, "linear_num_value_heads", config_.value_heads);
  expect(!any_full || config_.heads % ranks_ == 0, "num_attention_heads", config_.heads);
  expect(!any_full || config_.kv_heads % ranks_ == 0 || ranks_ % config_.kv_heads == 0, "num_key_value_heads",
         config_.kv_heads);
}

void Planner::settle(const Unit& unit) {
  const std::string problem = problem_of(unit);
  for (const auto& [piece, cut] : unit) {
    if (problem.empty()) {
      add_cut(tensors_, piece, cut);
    } else {
      replicate(piece, problem);
      replicated_for_blocks_ += piece.bytes();
    }
  }
  if (first_problem_.empty()) first_problem_ = problem;
}

void Planner::refuse_large_copies() const {
  if (replicated_for_blocks_ <= checkpoint_.total_bytes() / replicated_share) return;
  fail<CannotSplit>(
      "{}: tensor {}; it and what is like it make up {:.0f} % of the weights, too much to be replicated on {} ranks",
      checkpoint_.describe(), first_problem_,
      100.0 * static_cast<double>(replicated_for_blocks_) / static_cast<double>(checkpoint_.total_bytes()), ranks_);
}

void Planner::vocabulary(const std::string& name) {
  const Piece piece = rows(name, config_.vocab_size, config_.hidden_size);
  const RankRuns runs = even_runs(piece.size, ranks_, piece.edge);
  if (std::ranges::any_of(runs, &std::vector<Run>::empty)) return replicate(piece, "fewer rows than ranks");
  add_cut(tensors_, piece, {Split::rows, runs, "rows of the vocabulary"});
}

void Planner::attention(const std::string& prefix) {
  const std::int64_t hidden = config_.hidden_size, dim = config_.head_dim, heads = config_.heads;
  const std::int64_t kv_heads = config_.kv_heads, per_head = config_.attn_output_gate ? 2 * dim : dim;
  const RankRuns own = even_runs(heads, ranks_), kv = shared_head_runs(kv_heads, ranks_);
  const int copies = static_cast<int>(std::max<std::int64_t>(1, ranks_ / kv_heads));
  const Cut query{Split::heads, scaled(own, per_head),
                  fmt::format("{} of {} query heads a rank{}", heads / ranks_, heads,
                              config_.attn_output_gate ? ", each with its gate" : "")};
  const Cut key_value{Split::heads, scaled(kv, dim),
                      copies == 1 ? fmt::format("{} of {} KV heads a rank", kv_heads / ranks_, kv_heads)
                                  : fmt::format("each of {} KV heads on {} ranks", kv_heads, copies),
                      copies};
  Unit unit{{rows(prefix + ".q_proj", heads * per_head, hidden), query},
            {rows(prefix + ".k_proj", kv_heads * dim, hidden), key_value},
            {rows(prefix + ".v_proj", kv_heads * dim, hidden), key_value},
            {columns(prefix + ".o_proj", hidden, heads * dim),
             {Split::columns, scaled(own, dim), "columns of the rank's query heads; summed over the ranks"}}};
  if (config_.attention_bias) {
    unit.emplace_back(tensor(prefix + ".q_proj.bias"), query);
    unit.emplace_back(tensor(prefix + ".k_proj.bias"), key_value);
    unit.emplace_back(tensor(prefix + ".v_proj.bias"), key_value);
    replicate(tensor(prefix + ".o_proj.bias"), "added once to the sum over the ranks");
  }
  settle(unit);
  for (const char* norm : {".q_norm.weight", ".k_norm.weight"}) replicate(tensor(prefix + norm), "all heads share it");
  for (const std::string_view scale : kv_scales) not_loaded_.push_back(fmt::format("{}.{}", prefix, scale));
}

void Planner::delta_net(const std::string& prefix) {
  const std::int64_t hidden = config_.hidden_size, keys = config_.key_heads * config_.key_dim;
  const std::int64_t value_heads = config_.value_heads, values = value_heads * config_.value_dim;
  const RankRuns own_values =
      value_head_runs(config_.key_heads, value_heads, checkpoint_.conventions().value_heads_tiled, ranks_);
  const RankRuns key_rows = scaled(even_runs(config_.key_heads, ranks_), config_.key_dim);
  const RankRuns value_rows = scaled(own_values, config_.value_dim);
  const std::string what = fmt::format("{} of {} key heads with their {} value heads a rank",
                                       config_.key_heads / ranks_, config_.key_heads, value_heads / ranks_);
  const Cut qkv{Split::segments, joined({key_rows, key_rows, value_rows}, {keys, keys, values}), what};
  const Cut qkvz{Split::segments, joined({key_rows, key_rows, value_rows, value_rows}, {keys, keys, values, values}),
                 what};
  const Cut heads{Split::heads, own_values, what}, z{Split::heads, value_rows, what};
  const Cut both{Split::segments, joined({own_values, own_values}, {value_heads, value_heads}), what};
  Unit unit;
  if (has(prefix + ".in_proj_qkvz")) {
    unit.emplace_back(rows(prefix + ".in_proj_qkvz", config_.conv_channels() + values, hidden), qkvz);
  } else {
    unit.emplace_back(rows(prefix + ".in_proj_qkv", config_.conv_channels(), hidden), qkv);
    unit.emplace_back(rows(prefix + ".in_proj_z", values, hidden), z);
  }
  if (has(prefix + ".in_proj_ba")) {
    unit.emplace_back(rows(prefix + ".in_proj_ba", 2 * value_heads, hidden), both);
  } else {
    unit.emplace_back(rows(prefix + ".in_proj_b", value_heads, hidden), heads);
    unit.emplace_back(rows(prefix + ".in_proj_a", value_heads, hidden), heads);
  }
  unit.emplace_back(tensor(prefix + ".conv1d.weight"), qkv);
  unit.emplace_back(tensor(prefix + ".A_log"), heads);
  unit.emplace_back(tensor(prefix + ".dt_bias"), heads);
  unit.emplace_back(columns(prefix + ".out_proj", hidden, values),
                    Cut{Split::columns, value_rows, "columns of the rank's value heads; summed over the ranks"});
  settle(unit);
  replicate(tensor(prefix + ".norm.weight"), "all heads share it");
}

void Planner::mlp(const std::string& prefix, std::int64_t intermediate) {
  const RankRuns own = even_runs(intermediate, ranks_);
  const Cut up{Split::rows, own,
               fmt::format("{} of {} intermediate columns a rank", intermediate / ranks_, intermediate)};
  const Cut down{Split::columns, own, up.reason + "; summed over the ranks"};
  settle({{rows(prefix + ".gate_proj", intermediate, config_.hidden_size), up},
          {rows(prefix + ".up_proj", intermediate, config_.hidden_size), up},
          {columns(prefix + ".down_proj", config_.hidden_size, intermediate), down}});
}

/// What is stored for all experts at once, each with how many runs of intermediate rows it stacks; 0: they are its
/// columns.
std::vector<std::pair<FusedExperts, std::int64_t>> Planner::fused_experts(const std::string& prefix) const {
  std::vector<std::pair<FusedExperts, std::int64_t>> found;
  const std::int64_t hidden = config_.hidden_size, own = config_.moe_intermediate_size;
  const auto add = [&](std::string_view name, std::vector<std::int64_t> rows, std::int64_t in, std::int64_t stacked) {
    auto all =
        find_fused_experts(checkpoint_, fmt::format("{}.{}", prefix, name), config_.experts, rows, in, config_.storage);
    if (all) found.emplace_back(*std::move(all), stacked);
  };
  add("gate_up_proj", {own, own}, hidden, 2);
  add("gate_proj", {own}, hidden, 1);
  add("up_proj", {own}, hidden, 1);
  add("down_proj", {hidden}, own, 0);
  return found;
}

/// Tensors with a leading dimension of experts, each rank a run of them; scales of all experts go to every rank.
void Planner::share_experts(const std::vector<const StoredTensor*>& tensors, const std::string& reason) {
  for (const StoredTensor* tensor : tensors) {
    const bool each = !tensor->shape.empty() && tensor->shape.front() == config_.experts;
    const Piece piece{tensor->name, Along::experts, config_.experts, 1, {{tensor, each ? 0 : -1, 1}}, ""};
    add_cut(tensors_, piece, Cut{Split::experts, even_runs(config_.experts, ranks_), reason});
  }
}

void Planner::experts(const std::string& prefix) {
  const std::int64_t intermediate = config_.moe_intermediate_size, count = config_.experts;
  const RankRuns own = even_runs(intermediate, ranks_);
  const std::string what =
      fmt::format("{} of {} intermediate columns of every expert a rank", intermediate / ranks_, intermediate);
  const Cut up{Split::rows, own, what}, down{Split::columns, own, what + "; summed over the ranks"};
  const Cut gate_up{Split::segments, joined({own, own}, {intermediate, intermediate}), what};
  Unit unit;
  std::vector<std::int64_t> expert_of;
  std::vector<const StoredTensor*> of_all_experts;
  bool scales_together = false;
  const std::vector<std::pair<FusedExperts, std::int64_t>> fused_parts = fused_experts(prefix);
  for (const auto& [part, stacked] : fused_parts) {
    const Along along = stacked == 0 ? Along::columns : Along::rows;
    scales_together = scales_together || part.tensors.size() > 1;
    if (!scales_together) {
      unit.emplace_back(expert_piece(*part.tensors.front(), along), stacked == 0 ? down : stacked == 1 ? up : gate_up);
    }
    of_all_experts.insert(of_all_experts.end(), part.tensors.begin(), part.tensors.end());
  }
  for (std::int64_t e = 0; of_all_experts.empty() && e < count; ++e) {
    const std::string expert = fmt::format("{}.{}", prefix, e);
    unit.emplace_back(rows(expert + ".gate_proj", intermediate, config_.hidden_size), up);
    unit.emplace_back(rows(expert + ".up_proj", intermediate, config_.hidden_size), up);
    unit.emplace_back(columns(expert + ".down_proj", config_.hidden_size, intermediate), down);
    expert_of.insert(expert_of.end(), 3, e);
  }
  const std::string problem = problem_of(unit);
  if (scales_together && count % ranks_ != 0) {
    fail<CannotSplit>("{}: \"{}\": {} ranks cannot share {} experts evenly, and their scales are stored together",
                      checkpoint_.describe(), prefix, ranks_, count);
  }
  if (!scales_together && (problem.empty() || count % ranks_ != 0)) return settle(unit);
  const std::string reason =
      scales_together
          ? fmt::format("{} of {} experts a rank, as their scales are stored together", count / ranks_, count)
          : fmt::format("{} of {} experts a rank, as {} intermediate columns would cut blocks", count / ranks_, count,
                        intermediate / ranks_);
  share_experts(of_all_experts, reason);
  for (std::size_t i = 0; i < expert_of.size(); ++i) {
    add_owned(tensors_, unit[i].first, static_cast<int>(expert_of[i] * ranks_ / count), reason);
  }
}

void Planner::sparse_mlp(const std::string& prefix) {
  replicate(rows(prefix + ".gate", config_.experts, config_.hidden_size), "every rank routes");
  experts(prefix + ".experts");
  if (config_.shared_expert_intermediate_size == 0) return;
  mlp(prefix + ".shared_expert", config_.shared_expert_intermediate_size);
  replicate(rows(prefix + ".shared_expert_gate", 1, config_.hidden_size), "one row");
}

void Planner::layer(const std::string& prefix, bool full, bool dense) {
  replicate(tensor(prefix + ".input_layernorm.weight"), "norm of the whole row");
  replicate(tensor(prefix + ".post_attention_layernorm.weight"), "norm of the whole row");
  if (full) {
    attention(prefix + ".self_attn");
  } else {
    delta_net(prefix + ".linear_attn");
  }
  if (dense) {
    mlp(prefix + ".mlp", config_.intermediate_size);
  } else {
    sparse_mlp(prefix + ".mlp");
  }
}

void Planner::draft_head(const std::string& prefix) {
  const std::int64_t hidden = config_.hidden_size;
  for (const char* norm : {".pre_fc_norm_embedding.weight", ".pre_fc_norm_hidden.weight", ".norm.weight"}) {
    replicate(tensor(prefix + norm), "norm of the whole row");
  }
  settle({{columns(prefix + ".fc", hidden, 2 * hidden),
           {Split::columns, even_runs(2 * hidden, ranks_), "columns of the joined rows; summed over the ranks"}}});
  layer(prefix + ".layers.0", true, config_.experts == 0);
}

void Planner::vision() {
  const auto tower = find_part(root_, vision_part);
  if (!tower) return;
  if (!config_.vision) return not_loaded_.push_back(tower->prefix());
  for (const std::string& name : checkpoint_.names()) {
    if (name.starts_with(tower->prefix() + ".")) replicate(tensor(name), "every rank sees the pictures");
  }
}

void Planner::expect_all_planned() const {
  std::unordered_set<std::string_view> planned;
  for (const PlannedTensor& tensor : tensors_) {
    CHECK(planned.insert(tensor.tensor->name).second, "tensor {} is planned twice", tensor.tensor->name);
  }
  for (const std::string& name : checkpoint_.names()) {
    const bool passed_over = std::ranges::any_of(
        not_loaded_, [&](const std::string& prefix) { return name == prefix || name.starts_with(prefix + "."); });
    if (passed_over || planned.contains(name)) continue;
    fail<LoadError>("{}: tensor \"{}\" has no place in a plan for several ranks", checkpoint_.describe(), name);
  }
}

ParallelPlan Planner::plan() {
  check_heads();
  const std::string text = require_text(root_).prefix();
  vocabulary(text + ".embed_tokens");
  if (const auto head = find_part(root_, head_part); head || !config_.tie_word_embeddings) {
    const std::string name = head.value_or(root_).prefix() + (head && !head->prefix().empty() ? ".lm_head" : "lm_head");
    if (config_.tie_word_embeddings) {
      not_loaded_.push_back(name);
    } else {
      vocabulary(name);
    }
  }
  for (std::int64_t i = 0; i < config_.layers; ++i) {
    const auto index = static_cast<std::size_t>(i);
    layer(fmt::format("{}.layers.{}", text, i), config_.full_attention[index], config_.dense_mlp[index]);
  }
  replicate(tensor(text + ".norm.weight"), "norm of the whole row");
  if (const auto draft = find_part(root_, draft_part)) {
    if (config_.mtp_layers.value_or(1) == 1) {
      draft_head(draft->prefix());
    } else {
      not_loaded_.push_back(draft->prefix());
    }
  }
  vision();
  refuse_large_copies();
  expect_all_planned();
  ParallelPlan plan{ranks_, std::move(tensors_), std::vector<std::uint64_t>(static_cast<std::size_t>(ranks_))};
  for (const PlannedTensor& tensor : plan.tensors) {
    for (int rank = 0; rank < ranks_; ++rank) plan.bytes[static_cast<std::size_t>(rank)] += tensor.bytes(rank);
  }
  return plan;
}

/// The most ranks below `ranks` that the checkpoint can be split over.
int ranks_that_do(const Qwen3_5Config& config, const Checkpoint& checkpoint, int ranks) {
  while (ranks > 1) {
    try {
      ranks /= 2;
      Planner(config, checkpoint, ranks).plan();
      return ranks;
    } catch (const CannotSplit&) {
    }
  }
  return 1;
}

}  // namespace

std::string_view name_of(Split split) {
  constexpr std::string_view names[] = {"replicated", "rows", "columns", "segments", "heads", "experts"};
  return names[static_cast<std::size_t>(split)];
}

bool PlannedTensor::kept_by(int rank) const {
  if (axis >= 0) return !ranks[static_cast<std::size_t>(rank)].empty();
  return owner < 0 || owner == rank;
}

std::vector<std::int64_t> PlannedTensor::shape(int rank) const {
  if (!kept_by(rank)) return {};
  std::vector<std::int64_t> sizes = tensor->shape;
  if (axis >= 0 && !ranks.empty()) {
    sizes[static_cast<std::size_t>(axis)] = length_of(ranks[static_cast<std::size_t>(rank)]);
  }
  return sizes;
}

std::uint64_t PlannedTensor::bytes(int rank) const {
  if (!kept_by(rank)) return 0;
  if (axis < 0) return tensor->byte_size();
  StoredTensor part = *tensor;
  part.shape = shape(rank);
  return part.byte_size();
}

ParallelPlan plan_parallel(const Qwen3_5Config& config, const Checkpoint& checkpoint, int ranks) {
  CHECK(ranks >= 1, "{} ranks", ranks);
  try {
    return Planner(config, checkpoint, ranks).plan();
  } catch (const CannotSplit& refusal) {
    const int fewer = ranks_that_do(config, checkpoint, ranks);
    fail<LoadError>("{}; {} rank{} would do", refusal.what(), fewer, fewer == 1 ? "" : "s");
  }
}

}  // namespace sluice
