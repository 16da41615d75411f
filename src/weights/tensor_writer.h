#pragma once
#include <cstddef>
#include <span>

namespace sluice {

/// Writes the tensors that it was made for, one after another in that order. What was written is under its name only
/// after finish().
class TensorWriter {
 public:
  virtual ~TensorWriter() = default;
  /// The next bytes; a tensor follows the one before it without a gap, and may come in pieces. Throws Error when they
  /// cannot be written (a full disk).
  virtual void write(std::span<const std::byte> bytes) = 0;
  /// After the last byte. Throws Error.
  virtual void finish() = 0;
};

}  // namespace sluice
