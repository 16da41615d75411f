#include "apps/quantize_folder.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/version.h"
#include "weights/encode/forms.h"
#include "weights/formats/plain.h"

namespace sluice {

namespace {

bool is_quantized(const PlannedItem& item) { return item.matrix != nullptr && item.encoder->format != &plain_format; }

/// Modules with matrices that stay as they are, vision tower included.
std::vector<std::string> kept_modules(const QuantizePlan& plan) {
  constexpr std::string_view suffix = ".weight";
  std::set<std::string> names;
  for (const PlannedItem& item : plan.items) {
    if (item.matrix != nullptr && !is_quantized(item)) names.insert(item.matrix->name);
    if (item.other == nullptr || item.other->stored->shape.size() < 2) continue;
    const std::string& name = item.other->name;
    if (name.ends_with(suffix)) names.insert(name.substr(0, name.size() - suffix.size()));
  }
  return {names.begin(), names.end()};
}

/// Columns of a group of the matrix's factors.
std::int64_t group_size(const PlannedItem& item) { return item.matrix->in / item.parts[1].tensor.shape[1]; }

Json fp8_config(const QuantizePlan& plan) {
  return {{"quant_method", "fp8"},
          {"fmt", "e4m3"},
          {"activation_scheme", "dynamic"},
          {"weight_block_size", {128, 128}},
          {"modules_to_not_convert", kept_modules(plan)}};
}

Json modelopt(std::string_view algorithm, const QuantizePlan& plan) {
  return {{"quant_method", "modelopt"},
          {"quant_algo", algorithm},
          {"kv_cache_quant_algo", nullptr},
          {"producer", {{"name", "sluice"}, {"version", version()}}},
          {"ignore", kept_modules(plan)}};
}

Json nvfp4_config(const QuantizePlan& plan) {
  Json config = modelopt("NVFP4", plan);
  config["group_size"] = 16;
  return config;
}

/// One group of modules for each group size; the most frequent one is that of all linear modules not named otherwise.
Json int4_config(const QuantizePlan& plan) {
  std::map<std::int64_t, std::vector<std::string>> by_size;
  for (const PlannedItem& item : plan.items) {
    if (is_quantized(item)) by_size[group_size(item)].push_back(item.matrix->name);
  }
  const auto most = std::ranges::max_element(by_size, {}, [](const auto& entry) { return entry.second.size(); });
  Json groups = Json::object();
  for (auto entry = by_size.begin(); entry != by_size.end(); ++entry) {
    const Json targets = entry == most ? Json::array({"Linear"}) : Json(entry->second);
    groups[fmt::format("group_{}", groups.size())] = {{"targets", targets},
                                                      {"weights",
                                                       {{"num_bits", 4},
                                                        {"type", "int"},
                                                        {"symmetric", true},
                                                        {"strategy", "group"},
                                                        {"group_size", entry->first},
                                                        {"dynamic", false}}},
                                                      {"input_activations", nullptr},
                                                      {"output_activations", nullptr}};
  }
  return {{"quant_method", "compressed-tensors"}, {"format", "pack-quantized"},
          {"quantization_status", "compressed"},  {"config_groups", groups},
          {"ignore", kept_modules(plan)},         {"kv_cache_scheme", nullptr}};
}

/// Several forms beside each other, layer by layer.
Json mixed_config(const QuantizePlan& plan) {
  Json config = modelopt("MIXED_PRECISION", plan);
  Json& layers = config["quantized_layers"] = Json::object();
  for (const PlannedItem& item : plan.items) {
    if (!is_quantized(item)) continue;
    Json layer;
    if (item.encoder == &nvfp4_encoder) layer = {{"quant_algo", "NVFP4"}, {"group_size", 16}};
    if (item.encoder == &fp8_encoder) layer = {{"quant_algo", "FP8_PB_WO"}, {"group_size", 128}};
    if (item.encoder == &int4_encoder) layer = {{"quant_algo", "W4A16"}, {"group_size", group_size(item)}};
    // Names of matrices differ, so that no look-up is needed.
    layers.get_ref<Json::object_t&>().emplace_back(item.matrix->name, std::move(layer));
  }
  return config;
}

}  // namespace

Json quantized_config(const Json& config, const QuantizePlan& plan) {
  Json result = config;
  for (const char* name : {"quantization_config", "compression_config"}) {
    result.erase(name);
    if (result.contains("text_config")) result["text_config"].erase(name);
  }
  std::set<const Encoder*> used;
  for (const PlannedItem& item : plan.items) {
    if (is_quantized(item)) used.insert(item.encoder);
  }
  if (used.empty()) return result;
  const Encoder* only = used.size() == 1 ? *used.begin() : nullptr;
  result["quantization_config"] = only == nullptr          ? mixed_config(plan)
                                  : only == &fp8_encoder   ? fp8_config(plan)
                                  : only == &nvfp4_encoder ? nvfp4_config(plan)
                                                           : int4_config(plan);
  return result;
}

Json modelopt_config(const Json& quantized_config) {
  const auto found = quantized_config.find("quantization_config");
  if (found == quantized_config.end() || (*found)["quant_method"] != "modelopt") return nullptr;
  Json quantization = *found;
  Json producer = quantization["producer"];
  quantization.erase("quant_method");
  quantization.erase("producer");
  quantization["exclude_modules"] = quantization["ignore"];
  quantization.erase("ignore");
  return {{"producer", std::move(producer)}, {"quantization", std::move(quantization)}};
}

}  // namespace sluice
