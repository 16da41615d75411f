#include <algorithm>
#include <optional>

#include "apps/command_options.h"
#include "apps/commands.h"
#include "apps/inspect_parallel.h"
#include "apps/model_files.h"
#include "apps/model_sizes.h"
#include "apps/output.h"
#include "apps/session.h"
#include "apps/tensor_groups.h"
#include "base/error.h"
#include "cache/cache_plan.h"
#include "models/model.h"
#include "weights/formats/listed_modules.h"

namespace sluice {

namespace {

bool has_draft_head(const Checkpoint& checkpoint, const Qwen3_5Config& config) {
  const bool stored =
      checkpoint.find("mtp.fc.weight") != nullptr || checkpoint.find("language_model.mtp.fc.weight") != nullptr;
  return stored && config.mtp_layers.value_or(1) == 1;
}

std::vector<std::pair<std::string, Json>> summary_of(const Qwen3_5Config& config, bool draft_head) {
  const auto full = std::count(config.full_attention.begin(), config.full_attention.end(), true);
  std::vector<std::pair<std::string, Json>> lines{
      {"architecture", config.architecture},
      {"layers", config.layers},
      {"full_attention_layers", full},
      {"delta_net_layers", config.layers - full},
      {"hidden_size", config.hidden_size},
      {"vocabulary", config.vocab_size},
      {"attention_heads", config.heads},
      {"kv_heads", config.kv_heads},
      {"head_dim", config.head_dim},
      {"delta_key_heads", config.key_heads},
      {"delta_value_heads", config.value_heads},
      {"max_context", config.max_context()},
      {"tied_head", config.tie_word_embeddings},
      {"draft_head", draft_head},
      {"vision", config.vision.has_value()},
  };
  if (config.experts > 0) {
    lines.emplace_back("experts", config.experts);
    lines.emplace_back("experts_per_token", config.experts_per_token);
  } else {
    lines.emplace_back("intermediate_size", config.intermediate_size);
  }
  return lines;
}

/// --tensor-parallel-size, where it was given.
std::optional<int> ranks_to_plan(const EngineFlags& flags) {
  if (!flags.tensor_parallel_size.given()) return std::nullopt;
  const std::int64_t ranks = *flags.tensor_parallel_size;
  if (ranks != 1 && ranks != 2 && ranks != 4 && ranks != 8) {
    fail<UsageError>("--tensor-parallel-size {}: expected 1, 2, 4 or 8", ranks);
  }
  return static_cast<int>(ranks);
}

/// What the caches would take beside the weights, on this machine now.
struct MemoryPlan {
  std::uint64_t weights = 0, free = 0;
  CachePlan caches;
  std::string problem;  // why they do not fit; empty: they do
};

MemoryPlan plan_memory(const Qwen3_5Config& config, const Checkpoint& checkpoint, const Ops& ops,
                       const EngineFlags& flags) {
  MemoryPlan plan;
  plan.weights = checkpoint.total_bytes();
  plan.free = ops.free_memory();
  const double share = *flags.memory_utilization;
  const std::uint64_t left = plan.free > plan.weights ? plan.free - plan.weights : 0;
  try {
    plan.caches = plan_caches(cache_needs_of(config, has_draft_head(checkpoint, config)), ops.kv_dtype(),
                              static_cast<std::uint64_t>(static_cast<double>(left) * share),
                              {.max_model_len = *flags.max_model_len,
                               .max_num_seqs = *flags.max_num_seqs,
                               .max_context = config.max_context()});
  } catch (const DeviceError& error) {
    plan.problem = error.what();
  }
  return plan;
}

Json plan_json(const MemoryPlan& plan) {
  Json json = {{"weights_bytes", plan.weights}, {"free_bytes", plan.free}, {"fits", plan.problem.empty()}};
  if (!plan.problem.empty()) {
    json["problem"] = plan.problem;
    return json;
  }
  const CachePlan& caches = plan.caches;
  json["max_model_len"] = caches.max_model_len;
  json["sequences"] = caches.slots;
  json["state_bytes_per_sequence"] = caches.bytes_per_slot;
  json["kv_blocks"] = caches.blocks;
  json["kv_bytes_per_block"] = caches.bytes_per_block;
  json["cache_bytes"] = caches.bytes();
  return json;
}

/// Whether the checkpoint has all that the model needs, and nothing else.
struct Audit {
  std::vector<std::string> skipped;
  std::string problem;  // empty: it has
};

Audit audit(const Json& config, const Checkpoint& checkpoint) {
  try {
    return {audit_model(config, checkpoint), ""};
  } catch (const LoadError& error) {
    return {{}, error.what()};
  }
}

Json audit_json(const Audit& audit) {
  Json json = {{"complete", audit.problem.empty()}};
  if (!audit.problem.empty()) json["problem"] = audit.problem;
  json["passed_over"] = audit.skipped;
  return json;
}

std::string audit_text(const Audit& audit) {
  if (!audit.problem.empty()) return fmt::format("  NOT LOADABLE: {}\n", audit.problem);
  std::string text = "  every tensor is there, has the shape that is expected, and is known\n";
  for (const std::string& line : audit.skipped) text += fmt::format("  passed over: {}\n", line);
  return text;
}

Json differences_json(const QuantizationDifferences& differences) {
  Json modules = Json::array();
  for (const ModuleDifference& difference : differences.modules) {
    modules.push_back({{"modules", difference.modules},
                       {"count", difference.count},
                       {"listed_quantized", difference.listed_quantized},
                       {"stored", difference.stored}});
  }
  return {{"modules", modules}, {"not_understood", differences.not_understood}};
}

std::string differences_text(const QuantizationDifferences& differences) {
  std::string text = differences.modules.empty() ? "" : "  quantization_config says otherwise, the tensors count:\n";
  for (const ModuleDifference& difference : differences.modules) {
    text += fmt::format("    {} ({}): listed as {}, stored as {}\n", difference.modules, difference.count,
                        difference.listed_quantized ? "quantized" : "not quantized", difference.stored);
  }
  for (const std::string& entry : differences.not_understood) {
    text += fmt::format("  entry of quantization_config that is not understood: {}\n", entry);
  }
  return text;
}

struct Inspection {
  std::string directory;
  std::vector<std::pair<std::string, Json>> summary;
  std::vector<std::string> unknown_keys;
  std::vector<TensorGroup> groups;
  Audit audit;
  QuantizationDifferences differences;
  std::vector<std::string> device;
  MemoryPlan plan;
  std::optional<ParallelSummary> parallel;  // where it was asked for
};

Json inspection_json(const Inspection& inspection) {
  Json config = Json::object(), tensors = Json::array();
  for (const auto& [key, value] : inspection.summary) config[key] = value;
  for (const TensorGroup& group : inspection.groups) {
    tensors.push_back({{"name", group.name},
                       {"count", group.count},
                       {"format", group.format},
                       {"dtype", group.dtype},
                       {"shape", Json::parse(group.shape)},
                       {"bytes", group.bytes}});
  }
  Json json = {{"model", inspection.directory},
               {"config", config},
               {"unknown_config_keys", inspection.unknown_keys},
               {"tensors", tensors},
               {"audit", audit_json(inspection.audit)},
               {"quantization_differences", differences_json(inspection.differences)},
               {"device", inspection.device},
               {"memory", plan_json(inspection.plan)}};
  if (inspection.parallel) json["tensor_parallel"] = parallel_json(*inspection.parallel);
  return json;
}

std::string inspection_text(const Inspection& inspection) {
  std::string text = fmt::format("{}\n\nConfig\n", inspection.directory);
  for (const auto& [key, value] : inspection.summary) {
    text += fmt::format("  {:<24}{}\n", key, value.is_string() ? value.get<std::string>() : value.dump());
  }
  if (!inspection.unknown_keys.empty())
    text += fmt::format("  keys unknown here: {}\n", fmt::join(inspection.unknown_keys, ", "));
  std::size_t name_width = 4, shape_width = 5;
  std::uint64_t bytes = 0, count = 0;
  for (const TensorGroup& group : inspection.groups) {
    name_width = std::max(name_width, group.name.size());
    shape_width = std::max(shape_width, group.shape.size());
    bytes += group.bytes;
    count += group.count;
  }
  text += fmt::format("\nTensors: {}, {}\n", count, gibibytes(bytes));
  for (const TensorGroup& group : inspection.groups) {
    text += fmt::format("  {:<{}}  {:>5} x {:<{}}  {:<9} {:<8} {:>11}\n", group.name, name_width, group.count,
                        group.shape, shape_width, group.dtype, group.format, gibibytes(group.bytes));
  }
  text += "\nAudit\n" + audit_text(inspection.audit) + differences_text(inspection.differences);
  if (inspection.parallel) text += "\n" + parallel_text(*inspection.parallel);
  text += "\nDevice\n";
  for (const std::string& line : inspection.device) text += fmt::format("  {}\n", line);
  const MemoryPlan& plan = inspection.plan;
  text += fmt::format("\nMemory\n  weights {}, free {}\n", gibibytes(plan.weights), gibibytes(plan.free));
  if (!plan.problem.empty()) return text + fmt::format("  {}\n", plan.problem);
  for (const std::string& line : plan.caches.describe()) text += fmt::format("  {}\n", line);
  return text;
}

}  // namespace

int inspect_command(const CommandInfo& info, const std::vector<std::string>& arguments) {
  InspectOptions options;
  if (!read_into(options, info, arguments)) return 0;
  options.engine.refuse_unsupported_on_one_device();
  const std::optional<int> ranks = ranks_to_plan(options.engine);
  if (options.compare.given()) fail<UsageError>("--compare {}: this build has only the CPU backend", *options.compare);
  const std::unique_ptr<ModelFiles> files =
      open_model_files(options.model.name(), read_environment(), *options.model.mmproj);
  const Json json = files->config();
  const Qwen3_5Config config = parse_qwen3_5_config(json);
  const std::unique_ptr<Checkpoint> checkpoint = files->weights();
  const std::unique_ptr<Ops> ops = make_device(options.engine);
  Inspection inspection{files->path().string(),
                        summary_of(config, has_draft_head(*checkpoint, config)),
                        unknown_config_keys(json),
                        group_tensors(*checkpoint),
                        audit(json, *checkpoint),
                        quantization_differences(json.value("quantization_config", Json()), *checkpoint),
                        ops->describe(),
                        plan_memory(config, *checkpoint, *ops, options.engine),
                        std::nullopt};
  if (ranks && inspection.audit.problem.empty()) {
    inspection.parallel = summarize_parallel(config, *checkpoint, *ranks);
  } else if (ranks) {
    inspection.parallel = {*ranks, "the checkpoint cannot be loaded, see the audit", {}, {}};
  }
  write_output(*options.json ? indented_json(inspection_json(inspection)) : inspection_text(inspection));
  return 0;
}

}  // namespace sluice
