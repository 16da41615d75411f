#pragma once
#include <cstddef>
#include <vector>

#include "tensor/buffer.h"

namespace sluice {

/// Memory of one step: handed out upwards, given back by mark. Grows by whole buffers and keeps them, so that the
/// addresses of equal steps repeat. Not for use from several threads.
class Arena {
 public:
  struct Mark {
    std::size_t buffer = 0, used = 0;
  };
  /// Uninitialized bytes, aligned to 64.
  void* allocate(std::size_t bytes);
  Mark mark() const { return top_; }
  /// Everything allocated since the mark becomes free.
  void release(Mark mark) { top_ = mark; }
  std::size_t reserved_bytes() const;

 private:
  std::vector<Buffer> buffers_;
  Mark top_;
};

}  // namespace sluice
