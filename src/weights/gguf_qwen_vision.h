#pragma once
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/json.h"
#include "weights/gguf.h"

namespace sluice {

/// The picture tower of a GGUF file under the published names model.visual.* and with the published shapes. llama.cpp
/// keeps it in a file of its own (mmproj, architecture clip), the patch embedding as two temporal slices; Ollama beside
/// the text, with q, k and v apart. Bytes are the file's, but for what it has in parts: that is put together when asked
/// for.
class GgufQwenVision final : public Checkpoint {
 public:
  /// A file of llama.cpp's. Throws LoadError for another kind of file or projector, a part that is missing or unlike
  /// the others, and tensors that the family's tower does not have.
  static std::unique_ptr<GgufQwenVision> of_mmproj(std::shared_ptr<const GgufCheckpoint> file);
  /// What Ollama keeps beside the text; null where the file has no such tensors. Throws likewise.
  static std::unique_ptr<GgufQwenVision> of_text(std::shared_ptr<const GgufCheckpoint> file);

  /// vision_config as it would stand in config.json; values are checked where that is. Throws LoadError for keys that
  /// are missing or ask for something that the family's tower does not do.
  Json config() const;

  const StoredTensor* find(std::string_view name) const override;
  std::vector<std::string> names() const override;
  std::span<const std::byte> bytes(const StoredTensor& tensor) const override;
  void release(const StoredTensor& tensor) const override;
  std::uint64_t total_bytes() const override { return total_; }
  std::string describe() const override { return file_->describe(); }

 private:
  struct Entry {
    StoredTensor presented;
    std::vector<const StoredTensor*> parts;
    std::size_t chunk = 0;  // bytes of a part that lie together, of several parts
  };
  explicit GgufQwenVision(std::shared_ptr<const GgufCheckpoint> file) : file_(std::move(file)) {}

  void add(std::string_view published, std::vector<const StoredTensor*> parts, std::vector<std::int64_t> shape,
           std::size_t chunk);
  void add_renamed(const std::string& stored, std::string (*published_name)(std::string_view));
  /// The tensors of these names, which must be alike.
  std::vector<const StoredTensor*> alike(const std::vector<std::string>& stored) const;
  void add_patch_slices();
  void add_joined_qkv(std::int64_t block);
  void check_projector() const;
  std::int64_t size_of(std::string_view published, std::size_t axis) const;
  const Entry& entry_of(const StoredTensor& presented) const;

  std::shared_ptr<const GgufCheckpoint> file_;
  std::string keys_;  // what its keys begin with
  std::map<std::string, Entry, std::less<>> entries_;
  std::uint64_t total_ = 0;
  mutable std::mutex mutex_;  // of what is put together now
  mutable std::map<std::string, std::vector<std::byte>, std::less<>> joined_;
};

}  // namespace sluice
