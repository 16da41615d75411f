#pragma once
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/json.h"
#include "models/qwen3_5_config.h"
#include "weights/checkpoint.h"
#include "weights/format.h"

namespace sluice {

/// Value heads of rows or columns in another order: grouped by their key head, or tiled over the key heads.
struct HeadOrder {
  std::int64_t first = 0;     // rows before it stay
  std::int64_t per_head = 1;  // rows of one value head
  std::int64_t key_heads = 1, value_heads = 1;
  bool to_tiled = true;

  /// Which one of the source comes to this place.
  std::int64_t source_of(std::int64_t place) const;
};

/// A matrix [out, in] of the model to be written, made of runs of rows of stored ones.
struct MatrixRows {
  struct Run {
    SourceMatrix matrix;
    std::int64_t first = 0, count = 0;
  };
  std::string name;  // of the module; experts of one matrix all have the same when they are written as one
  std::vector<Run> runs;
  std::int64_t experts = 0;  // [experts, out / experts, in]; 0: one matrix
  std::int64_t out = 0, in = 0;
  std::int64_t stack = 0;  // equal for matrices that share a factor
  std::optional<HeadOrder> row_order, column_order;

  /// Rows first .. first + count - 1 as float32, [count, in]. Throws LoadError for a number that is not finite.
  void read(std::int64_t first, std::int64_t count, float* out_values) const;
  /// Bytes that the file has for them.
  std::uint64_t stored_bytes() const;
  /// The type of its numbers where it is stored plainly.
  std::optional<DType> plain_type() const;

 private:
  void read_in_source_order(std::int64_t first, std::int64_t count, float* out_values) const;
};

/// A tensor that is no matrix: it is written as it is, or with its numbers as other conventions want them.
struct OtherTensor {
  const StoredTensor* stored = nullptr;
  std::string name;
  bool is_vision = false;
};

/// A checkpoint as a list of what it holds.
struct QuantizeSource {
  std::vector<MatrixRows> matrices;
  std::vector<OtherTensor> others;
  std::deque<StoredTensor> slices;  // that matrices refer to
};

/// How the list is to be.
struct SourceView {
  Conventions conventions;       // of the numbers
  bool published_names = false;  // or those of the checkpoint, where it has other prefixes
  bool fused_experts = false;    // one matrix of all experts instead of one each
};

/// Throws LoadError for a checkpoint that is not complete.
QuantizeSource list_source(const Json& config, const Checkpoint& checkpoint, const SourceView& view);

/// The numbers of a tensor that is no matrix, in the view's conventions. Throws LoadError.
std::vector<float> other_values(const OtherTensor& tensor, const Qwen3_5Config& config, const Checkpoint& checkpoint,
                                const SourceView& view);
/// Whether these are the numbers of the file.
bool is_as_stored(const OtherTensor& tensor, const Qwen3_5Config& config, const Checkpoint& checkpoint,
                  const SourceView& view);

}  // namespace sluice
