#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "weights/format.h"

namespace sluice {

/// A matrix [out, in] in the layout that one backend wants; made by a Placer, used by that backend's operations.
class Weight {
 public:
  virtual ~Weight() = default;
  std::int64_t out() const { return out_; }
  std::int64_t in() const { return in_; }
  /// Bytes it occupies on its device, and so what one pass over it reads.
  virtual std::size_t bytes() const = 0;
  /// The backend's own name of the layout, for people.
  virtual std::string layout() const = 0;

 protected:
  Weight(std::int64_t out, std::int64_t in) : out_(out), in_(in) {}

 private:
  std::int64_t out_, in_;
};
using WeightPtr = std::shared_ptr<const Weight>;

/// The matrices of all experts of one layer, one after another: [experts][out, in].
class ExpertWeights {
 public:
  virtual ~ExpertWeights() = default;
  std::int64_t experts() const { return experts_; }
  std::int64_t out() const { return out_; }
  std::int64_t in() const { return in_; }
  virtual std::size_t bytes() const = 0;
  virtual std::string layout() const = 0;

 protected:
  ExpertWeights(std::int64_t experts, std::int64_t out, std::int64_t in) : experts_(experts), out_(out), in_(in) {}

 private:
  std::int64_t experts_, out_, in_;
};
using ExpertWeightsPtr = std::shared_ptr<const ExpertWeights>;

/// What a backend implements to take weights in. Sources are read within the call only.
class Placer {
 public:
  virtual ~Placer() = default;
  /// Parts are stacked by rows; all have the same `in`.
  virtual WeightPtr place(std::span<const SourceMatrix> parts) = 0;
  /// parts[e] are the stacked parts of expert e; all experts have the same shape.
  virtual ExpertWeightsPtr place_experts(const std::vector<std::vector<SourceMatrix>>& parts) = 0;
  /// A float32 tensor that lives as long as the placer.
  virtual Tensor place_vector(std::span<const float> values, const Shape& shape) = 0;
  /// The same for int32.
  virtual Tensor place_indices(std::span<const std::int32_t> values) = 0;
};

}  // namespace sluice
