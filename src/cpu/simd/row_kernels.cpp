#include "cpu/simd/row_kernels.h"

#include "cpu/simd/instruction_set.h"

namespace sluice {

const RowKernels& row_kernels(const InstructionSet& instruction_set) {
  if (instruction_set.name == "plain") return row_kernels_plain;
  if (instruction_set.name == "avx2") return row_kernels_avx2;
  return row_kernels_avx512;
}

}  // namespace sluice
