#pragma once
#include <memory>
#include <string>
#include <vector>

#include "weights/checkpoint.h"

namespace sluice {

/// Two checkpoints as one; conventions are those of the first.
class JoinedCheckpoint final : public Checkpoint {
 public:
  /// Throws LoadError for a tensor that both have.
  JoinedCheckpoint(std::unique_ptr<Checkpoint> first, std::unique_ptr<Checkpoint> second);

  const StoredTensor* find(std::string_view name) const override;
  std::vector<std::string> names() const override;
  std::span<const std::byte> bytes(const StoredTensor& tensor) const override { return owner(tensor).bytes(tensor); }
  void release(const StoredTensor& tensor) const override { owner(tensor).release(tensor); }
  std::uint64_t total_bytes() const override { return first_->total_bytes() + second_->total_bytes(); }
  Conventions conventions() const override { return first_->conventions(); }
  std::string describe() const override;

 private:
  const Checkpoint& owner(const StoredTensor& tensor) const;

  std::unique_ptr<Checkpoint> first_, second_;
};

}  // namespace sluice
