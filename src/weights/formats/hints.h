#pragma once
#include "base/json.h"
#include "weights/format.h"

namespace sluice {

/// How a matrix is stored is read from its tensors; here is looked at what they cannot tell. Throws LoadError for a
/// `quantization_config` that says something about them that is not supported.
StorageHints read_storage_hints(const Json& quantization_config);

}  // namespace sluice
