#pragma once
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "weights/checkpoint.h"
#include "weights/format.h"

namespace sluice::test {

/// Tensors in memory, for tests of formats.
class MemoryCheckpoint final : public Checkpoint {
 public:
  void add(const std::string& name, DType dtype, std::vector<std::int64_t> shape, std::vector<std::byte> bytes,
           const BlockType* block_type = nullptr) {
    StoredTensor tensor{name, dtype, std::move(shape), "memory"};
    tensor.block_type = block_type;
    CHECK(bytes.size() == tensor.byte_size(), "{}: {} bytes for {}", name, bytes.size(), tensor.byte_size());
    tensors_[name] = {std::move(tensor), std::move(bytes)};
  }
  template <class T>
  void add_values(const std::string& name, DType dtype, std::vector<std::int64_t> shape, const std::vector<T>& values) {
    std::vector<std::byte> bytes(values.size() * sizeof(T));
    std::memcpy(bytes.data(), values.data(), bytes.size());
    add(name, dtype, std::move(shape), std::move(bytes));
  }
  void remove(const std::string& name) { tensors_.erase(name); }
  StoredTensor& tensor(const std::string& name) { return tensors_.at(name).first; }
  std::vector<std::byte>& data(const std::string& name) { return tensors_.at(name).second; }

  /// find_matrix(); without a format if there is none.
  SourceMatrix matrix(const std::string& base, std::int64_t out, std::int64_t in) const {
    return find_matrix(*this, base, out, in).value_or(SourceMatrix{});
  }

  const StoredTensor* find(std::string_view name) const override {
    const auto found = tensors_.find(std::string(name));
    return found == tensors_.end() ? nullptr : &found->second.first;
  }
  std::vector<std::string> names() const override {
    std::vector<std::string> all;
    for (const auto& [name, tensor] : tensors_) all.push_back(name);
    return all;
  }
  std::span<const std::byte> bytes(const StoredTensor& tensor) const override {
    return tensors_.at(tensor.name).second;
  }
  void release(const StoredTensor&) const override {}
  std::uint64_t total_bytes() const override { return 0; }
  std::string describe() const override { return "memory"; }

 private:
  std::map<std::string, std::pair<StoredTensor, std::vector<std::byte>>> tensors_;
};

}  // namespace sluice::test
