#include "cpu/probes.h"

#include <gtest/gtest.h>

namespace sluice {
namespace {

TEST(MachineLimits, AreRatesThatAMachineCanHave) {
  ThreadPool pool(1);
  const MachineLimits limits = measure_machine_limits(pool, choose_instruction_set(""));
  EXPECT_GT(limits.read_bytes_per_second, 1e8);
  EXPECT_LT(limits.read_bytes_per_second, 2e12);
  EXPECT_GT(limits.f32_flops, 1e8);
  EXPECT_LT(limits.f32_flops, 1e12);
  EXPECT_GE(limits.bf16_flops, 0.3 * limits.f32_flops);
  EXPECT_LT(limits.bf16_flops, 1e13);
}

}  // namespace
}  // namespace sluice
