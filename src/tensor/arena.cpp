#include "tensor/arena.h"

#include <algorithm>

namespace sluice {

namespace {
constexpr std::size_t alignment = 64;
constexpr std::size_t smallest_buffer = std::size_t{1} << 20;
}  // namespace

void* Arena::allocate(std::size_t bytes) {
  const std::size_t rounded = (std::max<std::size_t>(bytes, 1) + alignment - 1) / alignment * alignment;
  while (top_.buffer < buffers_.size() && top_.used + rounded > buffers_[top_.buffer].bytes()) {
    top_ = {top_.buffer + 1, 0};
  }
  if (top_.buffer == buffers_.size()) {
    buffers_.push_back(host_buffer(std::max({rounded, smallest_buffer, reserved_bytes()})));
  }
  auto* data = static_cast<std::byte*>(buffers_[top_.buffer].data()) + top_.used;
  top_.used += rounded;
  return data;
}

std::size_t Arena::reserved_bytes() const {
  std::size_t total = 0;
  for (const Buffer& buffer : buffers_) total += buffer.bytes();
  return total;
}

}  // namespace sluice
