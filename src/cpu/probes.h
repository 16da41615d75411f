#pragma once
#include "base/thread_pool.h"
#include "cpu/simd/instruction_set.h"

namespace sluice {

/// What a machine can do at most, measured; each takes a fraction of a second.
struct MachineLimits {
  double read_bytes_per_second = 0.0;  // from memory, by all threads of the pool
  double f32_flops = 0.0;              // per second, by all threads, from registers
  double bf16_flops = 0.0;             // the same where pairs of bf16 are multiplied; else as float32
};

MachineLimits measure_machine_limits(ThreadPool& pool, const InstructionSet& instruction_set);

}  // namespace sluice
