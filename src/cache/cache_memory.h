#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>

#include "tensor/buffer.h"

namespace sluice {

/// How the pools get memory on a device, and fill it.
struct CacheMemory {
  std::function<Buffer(std::size_t bytes)> allocate;  // zeroed
  std::function<void(const Tensor& tensor, std::uint8_t value)> fill;
};

/// Every byte of freed caches in builds that poison them: NaN in each floating type.
inline constexpr std::uint8_t cache_poison = 0xff;

}  // namespace sluice
