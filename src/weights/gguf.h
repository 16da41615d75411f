#pragma once
#include <filesystem>
#include <memory>

#include "weights/gguf_header.h"

namespace sluice {

/// A GGUF file, or all files of a set NAME-00001-of-0000N.gguf; memory-mapped, under ggml's names.
class GgufCheckpoint final : public MappedCheckpoint {
 public:
  /// `path` is the file, or the first of the set. Throws LoadError for a header that does not add up, a file of the set
  /// that is missing or belongs to another one, and for tensors that two files hold.
  explicit GgufCheckpoint(const std::filesystem::path& path);

  /// Of the (first) file.
  const GgufMetadata& metadata() const { return *metadata_; }

 private:
  std::optional<GgufMetadata> metadata_;
};

/// NAME.gguf, or NAME-00001-of-0000N.gguf, without what follows NAME.
std::string gguf_name(const std::filesystem::path& path);
/// Whether it is a file of a set other than the first, by its name.
bool is_later_gguf_part(const std::filesystem::path& path);

}  // namespace sluice
