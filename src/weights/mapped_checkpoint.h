#pragma once
#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/mmap.h"
#include "weights/checkpoint.h"

namespace sluice {

/// A tensor and where its bytes lie within its file.
struct FileTensor {
  StoredTensor tensor;
  std::uint64_t begin = 0, end = 0;
};

/// Tensors of mapped files, under the names that the files give them.
class MappedCheckpoint : public Checkpoint {
 public:
  const StoredTensor* find(std::string_view name) const override;
  std::vector<std::string> names() const override;
  std::span<const std::byte> bytes(const StoredTensor& tensor) const override;
  void release(const StoredTensor& tensor) const override;
  std::uint64_t total_bytes() const override { return total_; }
  std::string describe() const override { return description_; }

  /// Takes a file in, whose ranges were checked. Throws LoadError for a name that an earlier file has.
  void add_file(std::unique_ptr<MappedFile> file, std::vector<FileTensor> tensors);
  void set_description(std::string description) { description_ = std::move(description); }

 private:
  struct Record {
    StoredTensor tensor;
    const MappedFile* file;
    std::uint64_t begin;
  };
  const Record& record_of(const StoredTensor& tensor) const;

  std::vector<std::unique_ptr<MappedFile>> files_;
  std::map<std::string, Record, std::less<>> records_;
  std::uint64_t total_ = 0;
  std::string description_;
};

}  // namespace sluice
