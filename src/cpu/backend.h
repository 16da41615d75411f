#pragma once
#include <memory>
#include <string>

#include "ops/ops.h"

namespace sluice {

enum class Compute : std::uint8_t {
  f32,   // inputs of products, KV and state in float32: the reference
  bf16,  // inputs of products and KV rounded to bf16
};

struct CpuOptions {
  int threads = 0;  // 0: as many as this process may use
  Compute compute = Compute::bf16;
  std::string instruction_set;  // empty: the best of this machine; else one of plain, avx2, avx512, avx512-bf16 (tests)
};

/// The CPU as a device. Throws DeviceError for an instruction set that the machine lacks.
std::unique_ptr<Ops> make_cpu_backend(const CpuOptions& options);

}  // namespace sluice
