#pragma once
#include <cstdint>
#include <string>

#include "apps/model_sizes.h"
#include "models/model.h"
#include "ops/ops.h"

namespace sluice {

/// What the machine can do, measured in this run.
struct MachineRates {
  double read_bandwidth = 0;  // bytes a second
  double product_peak = 0;    // operations a second of the unit that multiplies matrices
  double float_peak = 0;      // operations a second in float32
  std::string device;         // the processor's own name
};

/// A measurement's roof, as the bench command defines it (tokens a second).
class BenchLimits {
 public:
  BenchLimits(const MachineRates& rates, const ModelSizes& sizes, const CacheNeeds& needs, const Ops& ops,
              const Model& model);
  /// Of a decode step for `batch` sequences of `context` tokens each: batch / sum over phases of
  /// max(bytes / bandwidth, operations / peak).
  double decode(double batch, double context) const;
  /// Of a prefill of `tokens` tokens, only the last one scored: 1 / sum over operations of FLOPs / peak.
  double prefill(double tokens) const;

 private:
  double phase(double bytes, double operations, double peak) const;
  MachineRates rates_;
  ModelSizes sizes_;
  double bytes_per_parameter_ = 0, kv_bytes_per_token_ = 0;
};

}  // namespace sluice
