#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "base/json.h"
#include "weights/checkpoint.h"

namespace sluice {

/// Modules that are stored otherwise than a config says, with numbers of layers and experts as *.
struct ModuleDifference {
  std::string modules;
  std::uint64_t count = 0;
  bool listed_quantized = false;  // what the config says
  std::string stored;             // type of the values
};

/// Where `quantization_config` and the tensors, which count, disagree.
struct QuantizationDifferences {
  std::vector<ModuleDifference> modules;
  std::vector<std::string> not_understood;  // entries of its lists

  bool empty() const { return modules.empty() && not_understood.empty(); }
  /// All in one line, the first few by name.
  std::string summary() const;
};

/// Compares the lists of a `quantization_config` (modules left out, modules chosen) with the types of the matrices.
/// Names may have or lack the prefixes that published checkpoints have, and be those of fused matrices or of their
/// parts. The config is not trusted: what it says may be anything, and the work is bounded.
QuantizationDifferences quantization_differences(const Json& quantization_config, const Checkpoint& checkpoint);

}  // namespace sluice
