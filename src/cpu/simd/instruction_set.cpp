#include "cpu/simd/instruction_set.h"

#include <iterator>

#include "base/error.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace sluice {

namespace {

constexpr InstructionSet sets[] = {
    {.name = "plain"},
    {.name = "avx2", .avx2 = true},
    {.name = "avx512", .avx2 = true, .avx512 = true},
    {.name = "avx512-bf16", .avx2 = true, .avx512 = true, .avx512_bf16 = true},
};

/// How many of the sets, from the first on, this machine and its operating system support.
std::size_t supported_sets() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !__builtin_cpu_supports("f16c")) return 1;
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
      !__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512vl")) {
    return 2;
  }
  return __builtin_cpu_supports("avx512bf16") ? 4 : 3;
#else
  return 1;
#endif
}

}  // namespace

const InstructionSet& choose_instruction_set(std::string_view name) {
  const std::size_t supported = supported_sets();
  if (name.empty()) return sets[supported - 1];
  for (std::size_t i = 0; i < std::size(sets); ++i) {
    if (sets[i].name != name) continue;
    if (i >= supported) {
      fail<DeviceError>("this machine lacks the instruction set {}; the best it has is {}", name,
                        sets[supported - 1].name);
    }
    return sets[i];
  }
  fail<DeviceError>("unknown instruction set \"{}\", expected plain, avx2, avx512 or avx512-bf16", name);
}

bool has_amx_bf16() {
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (d >> 22 & 1u) != 0 && (d >> 24 & 1u) != 0;
#else
  return false;
#endif
}

}  // namespace sluice
