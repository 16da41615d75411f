#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "tensor/buffer.h"
#include "weights/checkpoint.h"

namespace sluice {

/// A random bf16 tensor: numbers from 1 to 4 times 2^n, where n is odd and 2^n is the magnitude or at most 4 times
/// less.
enum class RandomSign : std::uint8_t { both, positive, negative };
struct RandomTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  float magnitude = 1.0f;
  RandomSign sign = RandomSign::both;
};

/// A checkpoint of bf16 tensors that no file holds: bytes are drawn when asked for, and the same each time.
class RandomCheckpoint final : public Checkpoint {
 public:
  /// `description` is what describe() says. Names must differ.
  RandomCheckpoint(std::vector<RandomTensor> tensors, std::string description);

  const StoredTensor* find(std::string_view name) const override;
  std::vector<std::string> names() const override;
  std::span<const std::byte> bytes(const StoredTensor& tensor) const override;
  void release(const StoredTensor& tensor) const override;
  std::uint64_t total_bytes() const override { return total_bytes_; }
  std::string describe() const override { return description_; }

 private:
  struct Entry {
    StoredTensor stored;
    std::uint16_t fixed_bits = 0, random_bits = 0;
    mutable Buffer values;
  };
  std::map<std::string, Entry, std::less<>> entries_;
  mutable std::mutex mutex_;  // of the values
  std::uint64_t total_bytes_ = 0;
  std::string description_;
};

}  // namespace sluice
