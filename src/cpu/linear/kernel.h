#pragma once
#include <span>
#include <string_view>

#include "cpu/backend.h"
#include "cpu/linear/expand.h"
#include "cpu/linear/panels.h"
#include "cpu/linear/tile.h"
#include "cpu/simd/instruction_set.h"

namespace sluice {

/// A row of the table of kernels.
struct LinearKernel {
  std::string_view name;
  bool (*accepts)(Layout layout, const InstructionSet& machine, Compute compute);
  const TileKernels* tiles;
  const ExpandCoded* expand = nullptr;  // of coded panels, to what the tiles multiply
  std::int64_t expanded_bytes = 0;      // of one number that the tiles multiply; 0: panels are multiplied as they are
};

/// All kernels, fastest first.
std::span<const LinearKernel> linear_kernels();
/// The first that accepts; there always is one.
const LinearKernel& choose_linear_kernel(Layout layout, const InstructionSet& machine, Compute compute);

/// Writes columns first .. first + count - 1 of a panel as its kernel's tiles want them. `first` is a multiple of
/// panels.column_step(); `count` is even, and one too unless the columns end there.
void expand_panel(const LinearKernel& kernel, const Panels& panels, const std::byte* panel, std::int64_t first,
                  std::int64_t count, std::byte* out);

}  // namespace sluice
