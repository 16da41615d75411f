#include "cpu/simd/row_kernels.h"

#include "cpu/simd/instruction_set.h"

namespace sluice {

const RowKernels& row_kernels(const InstructionSet& instruction_set) {
  if (instruction_set.avx512) return row_kernels_avx512;
  if (instruction_set.avx2) return row_kernels_avx2;
  return row_kernels_plain;
}

}  // namespace sluice
