#pragma once
#include <functional>
#include <map>
#include <vector>

#include "apps/quantize_plan.h"
#include "base/thread_pool.h"
#include "weights/tensor_writer.h"

namespace sluice {

/// How far the numbers that were written are from those that were read.
struct EncodingError {
  double squared_error = 0.0, squares = 0.0;  // sums
  float largest = 0.0f;                       // of the differences

  void add(const EncodingError& other);
  /// Relative L2 distance; 0 where all numbers are 0.
  double relative() const;
};

/// Carries out a plan. Memory stays near some tiles of one matrix for each thread.
class QuantizeRun {
 public:
  /// Bytes of the source done, of all. May throw to end the run.
  using Progress = std::function<void(std::uint64_t done, std::uint64_t total)>;

  QuantizeRun(const QuantizePlan& plan, const Qwen3_5Config& config, const Checkpoint& checkpoint,
              const SourceView& view, ThreadPool& pool, Progress progress);
  /// Writes all items; returns the error of each. Throws LoadError, and Error when they cannot be written.
  std::vector<EncodingError> write(TensorWriter& writer);

 private:
  /// Tiles of one matrix that are encoded at once.
  struct Step;
  EncodingError write_matrix(const PlannedItem& item, TensorWriter& writer);
  EncodingError encode_step(const PlannedItem& item, float extreme, Step& step);
  void write_other(const PlannedItem& item, TensorWriter& writer);
  /// Largest magnitude in the matrix and those that share its factor.
  float extreme_of(const PlannedItem& item);
  float largest_magnitude(const MatrixRows& matrix);
  void advance(std::uint64_t bytes);

  const QuantizePlan& plan_;
  const Qwen3_5Config& config_;
  const Checkpoint& checkpoint_;
  const SourceView& view_;
  ThreadPool& pool_;
  Progress progress_;
  std::uint64_t done_ = 0, total_ = 0;
  std::map<std::int64_t, std::vector<const MatrixRows*>> stacks_;  // of the matrices that need an extreme
  std::map<std::int64_t, float> extremes_;
};

/// Bytes that the source has for an item.
std::uint64_t stored_bytes(const PlannedItem& item);
/// Bytes that the result has for it.
std::uint64_t written_bytes(const PlannedItem& item);

}  // namespace sluice
