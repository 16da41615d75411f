#pragma once
#include <string_view>

namespace sluice {

/// What kernels may use of the machine. Each set contains those before it.
struct InstructionSet {
  std::string_view name;     // plain, avx2, avx512, avx512-bf16
  bool avx2 = false;         // with FMA and F16C
  bool avx512 = false;       // F, BW, DQ, VL
  bool avx512_bf16 = false;  // products of pairs of bf16
};

/// The set of this name; the best that the machine has for an empty one. Throws DeviceError for a name that does not
/// exist and for a set that the machine lacks.
const InstructionSet& choose_instruction_set(std::string_view name);

/// Whether the machine has tiles for bf16 products.
bool has_amx_bf16();

}  // namespace sluice
