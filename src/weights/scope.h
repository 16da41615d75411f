#pragma once
#include <functional>
#include <initializer_list>
#include <memory>
#include <set>
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
  WeightScope(const Checkpoint& checkpoint, Placer& placer);

  /// The scope of a child: at("layers.3") of "model" is "model.layers.3".
  WeightScope at(std::string_view child) const;
  const std::string& prefix() const { return prefix_; }
  /// Whether any format stores the matrix, or a tensor has exactly this name, under the prefix.
  bool has(std::string_view name) const;

  /// A vector of `size` numbers as float32 (any shape of that many elements). Claims it.
  std::vector<float> values(std::string_view name, std::int64_t size) const;
  /// The same, mapped (for example 1 + w) and placed on the device.
  Tensor vector(std::string_view name, std::int64_t size,
                const std::function<float(float)>& map = nullptr) const;

  /// The matrix stored as NAME.weight (or a quantized form of it), [out, in].
  WeightPtr matrix(std::string_view name, std::int64_t out, std::int64_t in) const;
  /// Several stored matrices as one, stacked by rows in this order.
  WeightPtr stacked(std::initializer_list<StackPart> parts, std::int64_t in) const;
  /// Experts: the fused tensor FUSED [experts, out, in], or experts.{e}.NAME for each part, stacked.
  ExpertWeightsPtr experts(std::string_view fused, std::initializer_list<StackPart> parts, std::int64_t experts,
                           std::int64_t in) const;

  /// Marks all tensors whose names begin with PREFIX.NAME as accounted for, with the reason they are not loaded.
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
  SourceMatrix source(std::string_view name, std::int64_t out, std::int64_t in) const;
  void claim(const SourceMatrix& matrix) const;
  void release(const SourceMatrix& matrix) const;

  std::shared_ptr<Shared> shared_;
  std::string prefix_;
};

}  // namespace sluice
