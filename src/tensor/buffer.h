#pragma once
#include <cstddef>
#include <functional>
#include <utility>

#include "tensor/tensor.h"

namespace sluice {

/// Owns bytes on some device; the allocator's release function frees them.
class Buffer {
 public:
  Buffer() = default;
  Buffer(void* data, std::size_t bytes, std::function<void(void*)> release)
      : data_(data), bytes_(bytes), release_(std::move(release)) {}
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    swap(other);
    return *this;
  }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  ~Buffer() {
    if (data_ != nullptr) release_(data_);
  }

  void* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  /// A view from byte `offset` on; must lie inside.
  Tensor view(std::size_t offset, DType dtype, Shape shape) const;

 private:
  void swap(Buffer& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(release_, other.release_);
  }
  void* data_ = nullptr;
  std::size_t bytes_ = 0;
  std::function<void(void*)> release_;
};

/// Zeroed host memory, aligned to 64 bytes; from 4 MiB on mapped apart and marked for huge pages.
/// Throws DeviceError when the machine has no more.
Buffer host_buffer(std::size_t bytes);

}  // namespace sluice
