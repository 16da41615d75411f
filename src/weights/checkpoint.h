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

struct BlockType;

/// One tensor as a file holds it: packed, row-major, little-endian; the bytes belong to the checkpoint.
struct StoredTensor {
  std::string name;
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
  std::string source;                     // file, for errors
  const BlockType* block_type = nullptr;  // of ggml; then dtype is u8 and says nothing, and rows are whole blocks

  std::int64_t elements() const;
  std::uint64_t byte_size() const;
  std::string_view type_name() const;  // as people write it
  std::string shape_text() const;      // "[3, 4]"
};

/// What the numbers of a checkpoint mean where files differ; by default as the published safetensors files have it.
struct Conventions {
  bool norms_hold_scale = false;   // norm weights are 1 + w already
  bool decay_ready = false;        // A_log holds -exp(A_log)
  bool value_heads_tiled = false;  // value head h reads key head h % key_heads, not h / (value_heads / key_heads)
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
  virtual Conventions conventions() const { return {}; }
  /// Where it was read from, for people.
  virtual std::string describe() const = 0;
};

/// "model.layers.3.mlp" as "model.layers.*.mlp": one name for tensors that differ only in their layers and experts.
std::string without_numbers(std::string_view name);

}  // namespace sluice
