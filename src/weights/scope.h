#pragma once
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "weights/weight.h"

namespace sluice {

/// Named rows of a stack: the child's name and how many rows it has.
struct StackPart {
  std::string_view name;
  std::int64_t rows = 0;
};

/// A checkpoint under a prefix: the only thing that a model's constructors take. Every look-up claims the tensors it
/// uses, checks their shapes, and gives the pages back; finish() then reports what nobody asked for.
class WeightScope {
 public:
  WeightScope(const Checkpoint& checkpoint, Placer& placer, const StorageHints& hints = {});

  /// The scope of a child: at("layers.3") of "model" is "model.layers.3".
  WeightScope at(std::string_view child) const;
  const std::string& prefix() const { return prefix_; }
  const Checkpoint& checkpoint() const;
  Placer& placer() const;
  /// Whether any format stores the matrix, or a tensor has exactly this name, under the prefix.
  bool has(std::string_view name) const;

  /// The numbers of a tensor of plain floats, as float32.
  std::vector<float> values(std::string_view name, const Shape& shape) const;
  /// The same, mapped (for example 1 + w) and placed on the device as a tensor of this shape.
  Tensor vector(std::string_view name, const Shape& shape, const std::function<float(float)>& map = nullptr) const;

  /// The matrix stored as NAME.weight (or a quantized form of it), [out, in].
  WeightPtr matrix(std::string_view name, std::int64_t out, std::int64_t in) const;
  /// Several stored matrices as one, stacked by rows in this order.
  WeightPtr stacked(std::initializer_list<StackPart> parts, std::int64_t in) const;
  /// Experts, in any form: FUSED [experts, sum of rows, in], or NAME [experts, rows, in] for each part (see
  /// find_fused_experts), or {e}.NAME for each part, stacked.
  ExpertWeightsPtr experts(std::string_view fused, std::initializer_list<StackPart> parts, std::int64_t experts,
                           std::int64_t in) const;

  /// Checks and claims a tensor of plain floats that is used from the file later, if at all.
  void reserve(std::string_view name, const std::vector<std::int64_t>& shape) const;
  /// Claims all tensors below PREFIX.NAME (or that tensor itself) without loading them, for this reason.
  void skip(std::string_view name, std::string_view reason) const;
  /// Throws LoadError that names the tensors nobody claimed, if there are any.
  void finish() const;
  /// "name: reason" for what skip() passed over, summed up.
  std::vector<std::string> skipped() const;
  /// Called with the bytes placed so far after each tensor, for a progress bar.
  void on_progress(std::function<void(std::uint64_t placed, std::uint64_t total)> callback);

 private:
  struct Shared;
  WeightScope(std::shared_ptr<Shared> shared, std::string prefix);
  std::string full(std::string_view name) const;
  const StoredTensor& plain_tensor(std::string_view name, const std::vector<std::int64_t>& shape) const;
  /// The experts stored as {e}.NAME for each part.
  ExpertWeightsPtr separate_experts(std::string_view fused, std::initializer_list<StackPart> parts,
                                    std::int64_t experts, std::int64_t in) const;
  [[noreturn]] void fail_experts(std::string_view fused, std::initializer_list<StackPart> parts, std::int64_t experts,
                                 std::int64_t in) const;
  SourceMatrix source(std::string_view name, std::int64_t out, std::int64_t in) const;
  void done(const SourceMatrix& matrix) const;
  void done(const StoredTensor& tensor) const;

  std::shared_ptr<Shared> shared_;
  std::string prefix_;
};

}  // namespace sluice
