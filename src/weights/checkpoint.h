#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/dtype.h"

namespace sluice {

/// One tensor as a file holds it: packed, row-major, little-endian; the bytes belong to the checkpoint.
struct StoredTensor {
  std::string name;
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
  std::string source;  // file, for errors

  std::int64_t elements() const;
  std::uint64_t byte_size() const { return static_cast<std::uint64_t>(elements()) * size_of(dtype); }
  std::string shape_text() const;  // "[3, 4]"
};

/// Names to bytes. Implementations check everything that a file claims before they say a name.
class Checkpoint {
 public:
  virtual ~Checkpoint() = default;
  /// Null when there is no such tensor. The pointer lives as long as the checkpoint.
  virtual const StoredTensor* find(std::string_view name) const = 0;
  virtual std::vector<std::string> names() const = 0;
  /// The tensor's bytes; valid until release() of the same tensor.
  virtual std::span<const std::byte> bytes(const StoredTensor& tensor) const = 0;
  /// The bytes are not needed for now: memory that they hold in this process is given back.
  virtual void release(const StoredTensor& tensor) const = 0;
  /// Of all tensors.
  virtual std::uint64_t total_bytes() const = 0;
  /// Where it was read from, for people.
  virtual std::string describe() const = 0;
};

}  // namespace sluice
