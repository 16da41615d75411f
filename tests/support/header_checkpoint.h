#pragma once
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "weights/checkpoint.h"

namespace sluice::test {

/// Names, types and shapes without numbers.
class HeaderCheckpoint final : public Checkpoint {
 public:
  Conventions meaning;

  void add(const std::string& name, DType dtype, std::vector<std::int64_t> shape,
           const BlockType* block_type = nullptr) {
    StoredTensor tensor{name, dtype, std::move(shape), "headers"};
    tensor.block_type = block_type;
    total_ += tensor.byte_size();
    tensors_[name] = std::move(tensor);
  }

  const StoredTensor* find(std::string_view name) const override {
    const auto found = tensors_.find(std::string(name));
    return found == tensors_.end() ? nullptr : &found->second;
  }
  std::vector<std::string> names() const override {
    std::vector<std::string> all;
    for (const auto& [name, tensor] : tensors_) all.push_back(name);
    return all;
  }
  std::span<const std::byte> bytes(const StoredTensor&) const override { return {}; }
  void release(const StoredTensor&) const override {}
  std::uint64_t total_bytes() const override { return total_; }
  Conventions conventions() const override { return meaning; }
  std::string describe() const override { return "headers"; }

 private:
  std::map<std::string, StoredTensor> tensors_;
  std::uint64_t total_ = 0;
};

}  // namespace sluice::test
