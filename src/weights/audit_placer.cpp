#include "weights/audit_placer.h"

namespace sluice {

namespace {

/// Rows and stored bytes of a stack.
struct Stack {
  std::int64_t out = 0;
  std::size_t bytes = 0;
};

Stack stack_of(std::span<const SourceMatrix> parts) {
  Stack stack;
  for (const SourceMatrix& matrix : parts) {
    stack.out += matrix.out;
    for (const StoredPart& part : matrix.parts) stack.bytes += part.tensor->byte_size();
  }
  return stack;
}

class AuditedWeight final : public Weight {
 public:
  AuditedWeight(const Stack& stack, std::int64_t in) : Weight(stack.out, in), bytes_(stack.bytes) {}
  std::size_t bytes() const override { return bytes_; }
  std::string layout() const override { return "as stored"; }

 private:
  std::size_t bytes_;
};

class AuditedExperts final : public ExpertWeights {
 public:
  AuditedExperts(std::int64_t count, const Stack& stack, std::int64_t in)
      : ExpertWeights(count, stack.out, in), bytes_(static_cast<std::size_t>(count) * stack.bytes) {}
  std::size_t bytes() const override { return bytes_; }
  std::string layout() const override { return "as stored"; }

 private:
  std::size_t bytes_;
};

}  // namespace

WeightPtr AuditPlacer::place(std::span<const SourceMatrix> parts) {
  return std::make_shared<AuditedWeight>(stack_of(parts), parts.front().in);
}

ExpertWeightsPtr AuditPlacer::place_experts(const std::vector<std::vector<SourceMatrix>>& parts) {
  return std::make_shared<AuditedExperts>(std::ssize(parts), stack_of(parts.front()), parts.front().front().in);
}

Tensor AuditPlacer::place_vector(std::span<const float> values, const Shape& shape) {
  vectors_.emplace_back(values.begin(), values.end());
  return Tensor(vectors_.back().data(), DType::f32, shape);
}

Tensor AuditPlacer::place_indices(std::span<const std::int32_t> values) {
  indices_.emplace_back(values.begin(), values.end());
  return Tensor(indices_.back().data(), DType::i32, {std::ssize(values)});
}

}  // namespace sluice
