#pragma once
#include <filesystem>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/output_file.h"
#include "tensor/tensor.h"
#include "weights/mapped_checkpoint.h"
#include "weights/tensor_writer.h"

namespace sluice {

/// A file (x.safetensors), or a directory with model.safetensors.index.json, model.safetensors, or one lone
/// *.safetensors file; memory-mapped. Throws LoadError for anything that does not add up: truncated, overlapping
/// or out-of-range data, wrong byte counts, unknown types, doubled names, shards or names that the index
/// lists and no file holds (and the reverse), headers over 100 MiB.
std::unique_ptr<Checkpoint> open_safetensors(const std::filesystem::path& path);

/// The tensors that a file's header claims, checked against the data that follows it; bytes are not read.
/// `file_size` is that of the whole file, `head` its first bytes (8 + header at least).
std::vector<FileTensor> parse_safetensors_header(std::span<const std::byte> head, std::uint64_t file_size,
                                                 std::string_view what);

/// Writes contiguous host tensors to a new file. Throws Error when the disk is full or the path is bad; then no
/// file of that name is left behind.
void write_safetensors(const std::filesystem::path& path, const std::vector<std::pair<std::string, Tensor>>& tensors);

/// Writes one file. Of the tensors, names, types and shapes count. Throws Error for types that the writer lacks.
class SafetensorsWriter final : public TensorWriter {
 public:
  SafetensorsWriter(const std::filesystem::path& path, std::span<const StoredTensor> tensors);
  void write(std::span<const std::byte> bytes) override;
  void finish() override;

 private:
  OutputFile file_;
  std::uint64_t left_ = 0;
};

/// Writes the files of a folder that open_safetensors reads: model.safetensors, or with more bytes of tensors than
/// `max_file_bytes` as many as it takes, and model.safetensors.index.json. A tensor is never cut.
class SafetensorsFolderWriter final : public TensorWriter {
 public:
  /// The folder must exist.
  SafetensorsFolderWriter(std::filesystem::path folder, std::vector<StoredTensor> tensors,
                          std::uint64_t max_file_bytes);
  void write(std::span<const std::byte> bytes) override;
  void finish() override;

 private:
  struct File {
    std::size_t first = 0, count = 0;  // tensors
    std::uint64_t bytes = 0;
  };
  std::string file_name(std::size_t file) const;
  void open_next();
  void write_index() const;

  std::filesystem::path folder_;
  std::vector<StoredTensor> tensors_;
  std::vector<File> files_;
  std::size_t next_ = 0;                     // file to open
  std::unique_ptr<SafetensorsWriter> open_;  // null before the first
  std::uint64_t left_ = 0;                   // bytes that the open file lacks
};

}  // namespace sluice
