#include "base/log.h"
#include "models/model.h"
#include "models/qwen3_5.h"
#include "weights/formats/listed_modules.h"

namespace sluice {

std::unique_ptr<Model> load_model(const Json& config, const Checkpoint& checkpoint, Ops& ops,
                                  std::function<void(std::uint64_t placed, std::uint64_t total)> on_progress) {
  const Qwen3_5Config parsed = parse_qwen3_5_config(config);
  const auto differences = quantization_differences(config.value("quantization_config", Json()), checkpoint);
  if (!differences.empty()) log_warning("quantization_config and the tensors, which count: {}", differences.summary());
  WeightScope root(checkpoint, ops.placer(), parsed.storage);
  root.on_progress(std::move(on_progress));
  return std::make_unique<Qwen3_5>(parsed, root);
}

std::vector<std::string> audit_model(const Json& config, const Checkpoint& checkpoint) {
  AuditPlacer placer;
  return audit_model(config, checkpoint, placer);
}

std::vector<std::string> audit_model(const Json& config, const Checkpoint& checkpoint, AuditPlacer& placer) {
  const Qwen3_5Config parsed = parse_qwen3_5_config(config);
  const WeightScope root(checkpoint, placer, parsed.storage);
  const Qwen3_5 model(parsed, root);
  return root.skipped();
}

std::vector<std::string> unknown_config_keys(const Json& config) { return unknown_qwen3_5_keys(config); }

}  // namespace sluice
