#pragma once
#include <span>
#include <string_view>

#include "cpu/backend.h"
#include "cpu/linear/panels.h"
#include "cpu/linear/tile.h"
#include "cpu/simd/instruction_set.h"

namespace sluice {

/// A row of the table of kernels.
struct LinearKernel {
  std::string_view name;
  bool (*accepts)(Layout layout, const InstructionSet& machine, Compute compute);
  const TileKernels* tiles;
};

/// All kernels, fastest first.
std::span<const LinearKernel> linear_kernels();
/// The first that accepts; there always is one.
const LinearKernel& choose_linear_kernel(Layout layout, const InstructionSet& machine, Compute compute);

}  // namespace sluice
