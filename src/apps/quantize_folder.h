#pragma once
#include "apps/quantize_plan.h"
#include "base/json.h"

namespace sluice {

/// config.json of the result: that of the source, with a `quantization_config` as the usual engines read it.
Json quantized_config(const Json& config, const QuantizePlan& plan);
/// hf_quant_config.json, which ModelOpt's checkpoints have beside it; null for other formats.
Json modelopt_config(const Json& quantized_config);

}  // namespace sluice
