#pragma once
#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "weights/checkpoint.h"

namespace sluice {

/// A published size of the family: "qwen3.5-0.8b" and so on.
std::vector<std::string> shape_names();

/// The config.json of a shape, text model only. Throws UsageError for an unknown name.
Json shape_config(const std::string& name);

/// Random weights under the published names of such a config.
std::unique_ptr<Checkpoint> shape_weights(const std::string& name, const Json& config);

}  // namespace sluice
