#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "weights/checkpoint.h"

namespace sluice {

/// Tensors that differ only in the numbers of their layers and experts.
struct TensorGroup {
  std::string name, format, dtype, shape;
  std::uint64_t count = 0, bytes = 0;
};
std::vector<TensorGroup> group_tensors(const Checkpoint& checkpoint);

/// "1.50 GiB", or MiB below that.
std::string gibibytes(std::uint64_t bytes);

}  // namespace sluice
