#pragma once
#include <cstdint>
#include <vector>

#include "cache/cache_memory.h"
#include "ops/views.h"

namespace sluice {

/// The memory of the conv and recurrent state of all delta-net layers, a slot for each running sequence. Who uses
/// which slot is not known here.
class StatePool {
 public:
  StatePool(const CacheNeeds& needs, std::int64_t slots, CacheMemory memory);

  const std::vector<StateView>& layers() const { return layers_; }
  /// Makes the slot that of a fresh sequence.
  void zero(std::int32_t slot) const { fill(slot, 0); }
  void poison(std::int32_t slot) const { fill(slot, cache_poison); }

 private:
  void fill(std::int32_t slot, std::uint8_t value) const;

  CacheMemory memory_;
  std::vector<Buffer> buffers_;
  std::vector<StateView> layers_;
};

}  // namespace sluice
